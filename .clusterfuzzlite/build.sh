#!/usr/bin/env bash
# Builds every fuzz target into $OUT, in an image of OSS-Fuzz's: it has compile_python_fuzzer, which
# freezes one file with pyinstaller, and sets $SRC and $OUT (docs/hosted.md).
set -euo pipefail
cd "$SRC/residue"

for target in harnesses/targets/*_fuzzer.py; do
    compile_python_fuzzer "$target" \
        --paths "$PWD" --add-data "$PWD/harnesses/identity:harnesses/identity"
done
python3 -m harnesses.targets "$OUT"
