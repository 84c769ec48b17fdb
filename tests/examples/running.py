"""An example as its reader runs it, and one that a test looks into."""

import importlib.util
import os
import selectors
import socket
import subprocess
import sys
import threading
from pathlib import Path
from types import ModuleType, TracebackType
from typing import Any, Final
from unittest import mock

import engine
from tests.servers.running import WAIT

ROOT: Final = Path(__file__).parents[2]
ECHO: Final = ROOT / "examples" / "echo.py"


class Stop(Exception):
    """Ends a server that has no end of its own."""


class Selector(selectors.DefaultSelector):
    """One that counts how often it was asked, and can be told to stop who asks."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = 0
        self._end, self._told = socket.socketpair()
        self.register(self._told, selectors.EVENT_READ, (self._told, None, float("inf")))

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        self.asked += 1
        found = super().select(timeout)
        if any(key.fileobj is self._told for key, _ in found):
            raise Stop
        return found

    def stop(self) -> None:
        self._end.close()

    def close(self) -> None:
        super().close()
        self._told.close()


def load(path: Path) -> ModuleType:
    """A file as a module, in which the library is the one of this checkout."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    with mock.patch.dict(sys.modules, {"residue_tls": engine}):
        spec.loader.exec_module(module)
    return module


class Echo:
    """examples/echo.py in a thread, with other numbers; a context manager that ends it."""

    def __init__(self, identity: Path, **numbers: Any) -> None:
        self._module = load(ECHO)
        vars(self._module).update(numbers)
        self._selector = Selector()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.tls = engine.Engine.server(self._module.SLOTS, self._module.AREAS)
        self.tls.seed(bytes(32))
        chain, key = (identity / f"{name}.pem" for name in ("chain", "key"))
        self.tls.add_identity(chain.read_bytes(), key.read_bytes(), ["localhost"], 0)
        self._thread = threading.Thread(target=self._serve)

    def _serve(self) -> None:
        try:
            with mock.patch.object(selectors, "DefaultSelector", lambda: self._selector):
                self._module.serve(self.tls, self._listener)
        except Stop:
            pass

    @property
    def asked(self) -> int:
        """How often the server has asked what is ready."""
        return self._selector.asked

    def __enter__(self) -> "Echo":
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, fault: object, trace: TracebackType | None
    ) -> None:
        self._selector.stop()
        self._thread.join(WAIT)
        assert not self._thread.is_alive()
        # With the last that knows its connections they end, and they leave nothing.
        self._selector.close()
        self._listener.close()
        assert self.tls.residue() == 0
        assert self.tls.areas_free() == self.tls.areas()


def command(folder: Path, path: Path, *arguments: str) -> "subprocess.Popen[str]":
    """A file run by its name, where the library is installed in `folder`."""
    (folder / "residue_tls").symlink_to(ROOT / "engine")
    return subprocess.Popen(
        [sys.executable, str(path), *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(folder), "PYTHONUNBUFFERED": "1"},
    )
