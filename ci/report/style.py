"""The page's colours and style sheet. A test computes every contrast that `PAIRS` and `LINES` name.

Two schemes of the same names; the browser chooses. Series are told apart by colour, dash and marker
together, so that none of the three is needed.
"""

from __future__ import annotations

from typing import Final

PALETTE: Final[dict[str, dict[str, str]]] = {
    "light": {
        "page": "#f6f7f9",
        "panel": "#ffffff",
        "sunk": "#eef0f4",
        "ink": "#1a1f29",
        "quiet": "#525b6b",
        "rule": "#c9ced8",
        "link": "#1f4fb8",
        "green": "#0b6b3a",
        "on-green": "#ffffff",
        "red": "#b01526",
        "on-red": "#ffffff",
        "amber": "#8a4b00",
        "on-amber": "#ffffff",
        "grey": "#47505f",
        "on-grey": "#ffffff",
        "add": "#0d5f33",
        "add-ground": "#e2f4e8",
        "cut": "#97101f",
        "cut-ground": "#fce6e7",
        "empty-ground": "#ffe3b8",
        "empty": "#6b3a00",
        "full-ground": "#dceee3",
        "full": "#0d4f2c",
        "s0": "#1f5fd0",
        "s1": "#b3261e",
        "s2": "#0b7a4b",
        "s3": "#8b3fb5",
        "s4": "#9a5b00",
        "s5": "#00748a",
        "s6": "#b01e78",
        "s7": "#4d5566",
    },
    "dark": {
        "page": "#12151b",
        "panel": "#1b2028",
        "sunk": "#262c37",
        "ink": "#e8ebf1",
        "quiet": "#abb4c3",
        "rule": "#3d4656",
        "link": "#8fb6ff",
        "green": "#1c6b42",
        "on-green": "#ffffff",
        "red": "#a3222f",
        "on-red": "#ffffff",
        "amber": "#855000",
        "on-amber": "#ffffff",
        "grey": "#4c5668",
        "on-grey": "#ffffff",
        "add": "#86dba8",
        "add-ground": "#16311f",
        "cut": "#ffa6ab",
        "cut-ground": "#3b181c",
        "empty-ground": "#5a3a08",
        "empty": "#ffdfae",
        "full-ground": "#1d3a2a",
        "full": "#a9e5c1",
        "s0": "#7fabff",
        "s1": "#ff8f85",
        "s2": "#5fd39a",
        "s3": "#d3a2f2",
        "s4": "#eab560",
        "s5": "#5fcfe0",
        "s6": "#ff92cb",
        "s7": "#b4bccb",
    },
}
PAIRS: Final = (
    ("ink", "page"),
    ("ink", "panel"),
    ("ink", "sunk"),
    ("quiet", "page"),
    ("quiet", "panel"),
    ("quiet", "sunk"),
    ("link", "page"),
    ("link", "panel"),
    *((f"on-{name}", name) for name in ("green", "red", "amber", "grey")),
    ("add", "add-ground"),
    ("cut", "cut-ground"),
    ("empty", "empty-ground"),
    ("full", "full-ground"),
)
"""Text and its ground: at least 4.5 to 1 (WCAG 2.2, 1.4.3)."""
SERIES: Final = 8
LINES: Final = tuple((f"s{number}", "panel") for number in range(SERIES))
"""What is drawn and its ground: at least 3 to 1 (WCAG 2.2, 1.4.11)."""
DASHES: Final = ("", "7 3", "2 3", "9 3 2 3", "4 2", "12 4", "2 2 6 2", "1 4")

RULES: Final = """
*{box-sizing:border-box}
html{background:var(--page);color:var(--ink);-webkit-text-size-adjust:100%}
body{margin:0 auto;max-width:76rem;padding:0 1rem 3rem;overflow-wrap:anywhere;
font:1rem/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"DejaVu Sans",sans-serif}
code,pre,.mono{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace;
font-size:.875em}
a{color:var(--link)}
:focus-visible{outline:3px solid var(--link);outline-offset:2px}
header{margin:0 -1rem;padding:1.25rem 1rem;border-radius:0 0 .5rem .5rem}
header h1{margin:.15rem 0;font-size:1.6rem;line-height:1.25}
header p,header ul{margin:.25rem 0}
header ul{padding-left:1.2rem}
.colour{font-weight:700;letter-spacing:.06em;text-transform:uppercase;font-size:.8rem}
.green{background:var(--green);color:var(--on-green)}
.red{background:var(--red);color:var(--on-red)}
.untrusted{background:var(--amber);color:var(--on-amber)}
.interrupted,.unfinished{background:var(--grey);color:var(--on-grey)}
.tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(8.5rem,1fr));gap:.6rem;
margin:1rem 0;padding:0}
.tiles div{background:var(--panel);border:1px solid var(--rule);border-radius:.4rem;
padding:.5rem .7rem}
.tiles dt{color:var(--quiet);font-size:.8rem}
.tiles dd{margin:0;font-size:1.35rem;font-weight:650;line-height:1.3;
font-variant-numeric:tabular-nums}
.tiles small{display:block;color:var(--quiet);font-size:.75rem;font-weight:400}
nav ul{display:flex;flex-wrap:wrap;gap:.2rem .9rem;list-style:none;margin:.5rem 0 0;padding:0}
nav a{display:inline-block;padding:.3rem 0}
section{background:var(--panel);border:1px solid var(--rule);border-radius:.5rem;
margin:1rem 0;padding:.4rem 1rem 1rem}
h2{font-size:1.25rem;margin:.6rem 0 .4rem}
h3{font-size:1rem;margin:1.1rem 0 .3rem}
p{margin:.4rem 0;max-width:52rem}
.none{color:var(--quiet)}
pre{background:var(--sunk);border-radius:.35rem;padding:.5rem .7rem;margin:.35rem 0;
overflow-x:auto;line-height:1.45}
pre.command{user-select:all}
dl.next{display:grid;grid-template-columns:minmax(12rem,1fr) minmax(0,2fr);gap:.1rem 1rem;
margin:.4rem 0;align-items:center}
dl.next dd{margin:0;min-width:0}
.wide{overflow-x:auto;margin:.6rem 0}
table{border-collapse:collapse;overflow-wrap:normal;font-size:.9rem;min-width:min(100%,24rem)}
caption{text-align:left;color:var(--quiet);font-size:.85rem;padding:.2rem 0}
th,td{text-align:left;vertical-align:top;padding:.25rem .7rem .25rem 0;
border-bottom:1px solid var(--rule)}
thead th{color:var(--quiet);font-weight:600;vertical-align:bottom;font-size:.82rem}
tbody th{font-weight:500}
th code,td code{white-space:nowrap}
.n{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}
td.no{color:var(--quiet)}
.steps td:last-child{min-width:14rem}
.side{display:flex;flex-wrap:wrap;gap:0 3rem}
.side>.wide{max-width:100%}
.tag{display:inline-block;border-radius:.25rem;padding:0 .4rem;font-size:.8rem;font-weight:600}
details{margin:.3rem 0;border-left:2px solid var(--rule);padding-left:.7rem}
summary{cursor:pointer;padding:.2rem 0;overflow-wrap:anywhere}
summary:hover{color:var(--link)}
pre code{font-size:inherit}
ins{color:var(--add);background:var(--add-ground);text-decoration:none}
del{color:var(--cut);background:var(--cut-ground);text-decoration:none}
mark{color:var(--cut);background:var(--cut-ground)}
.folds{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,20rem),1fr));
gap:0 1rem}
.folds>details{min-width:0}
.folds>details[open]{grid-column:1/-1}
.mutant p,.brief{margin:.5rem 0 .1rem;font-size:.9rem}
.bar{display:inline-block;height:.7em;background:var(--s0);border-radius:2px;min-width:1px;
vertical-align:baseline}
.bars td:last-child{width:60%}
.meter{display:inline-block;width:6rem;height:.6em;background:var(--sunk);border-radius:2px;
border:1px solid var(--rule);overflow:hidden}
.meter span{display:block;height:100%;background:var(--s2)}
.matrix{min-width:44rem}
.matrix td{text-align:center;padding:.15rem .3rem;border:1px solid var(--rule);
font-variant-numeric:tabular-nums}
.matrix thead th{text-align:center;padding:.2rem .3rem}
.matrix thead th:first-child{text-align:left}
.matrix tbody th{padding-right:.7rem}
.matrix th[scope=row]{position:sticky;left:0;background:var(--panel)}
.matrix th[scope=rowgroup]{padding-top:.8rem;font-weight:700}
.reached{background:var(--full-ground);color:var(--full)}
.empty{background:var(--empty-ground);color:var(--empty);font-weight:700}
.charts{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,21rem),1fr));gap:1rem}
figure{margin:.4rem 0;min-width:0}
figcaption{font-weight:600;font-size:.9rem}
svg{display:block;width:100%;height:auto;font:12px system-ui,"DejaVu Sans",sans-serif}
svg text{fill:var(--quiet)}
svg .axis{stroke:var(--quiet)}
svg .grid{stroke:var(--rule)}
svg .series{fill:none;stroke-width:2}
.legend{display:flex;flex-wrap:wrap;gap:.2rem 1rem;list-style:none;margin:.4rem 0;padding:0;
font-size:.85rem}
.legend svg{display:inline-block;width:34px;height:12px;vertical-align:middle;margin-right:.35rem}
footer{color:var(--quiet);font-size:.85rem;margin-top:1.5rem}
.skip{position:absolute;left:-99rem}
.skip:focus{left:1rem;top:.3rem;background:var(--panel);padding:.4rem .7rem;z-index:1}
@media (max-width:34rem){header h1{font-size:1.3rem}section{padding:.3rem .7rem .8rem}
.tiles{grid-template-columns:repeat(2,1fr)}pre{font-size:.8rem}
dl.next{display:block}dl.next dt{margin-top:.5rem}.meter{display:none}}
@media print{body{max-width:none;padding:0}section{break-inside:auto;border:0;padding:0}
nav,.skip{display:none}.wide,pre{overflow:visible}pre{white-space:pre-wrap}
header,.tag,.reached,.empty,ins,del,mark,.bar{print-color-adjust:exact;
-webkit-print-color-adjust:exact}}
"""


def sheet() -> str:
    """The style sheet, light unless the reader asks for dark."""

    def names(scheme: str) -> str:
        return "".join(f"--{name}:{colour};" for name, colour in PALETTE[scheme].items())

    series = "".join(f".s{n}{{stroke:var(--s{n})}}.m{n}{{fill:var(--s{n})}}" for n in range(SERIES))
    return (
        f":root{{color-scheme:light dark;{names('light')}}}\n"
        f"@media (prefers-color-scheme:dark){{:root{{{names('dark')}}}}}\n"
        f"@media print{{:root{{color-scheme:light;{names('light')}}}}}"
        f"{RULES}{series}\n"
    )
