"""A container engine that works here, if there is one, and an image of the interpreter that runs the tests.

No image is fetched: one is made of the running Python, its standard library, and the libraries that these need.
"""

from __future__ import annotations

import functools
import io
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
from pathlib import Path

IMAGE = "localhost/corpusforge-tests:{}.{}".format(*sys.version_info)
_NO_PRIVILEGE = """[containers]
default_ulimits = ["nproc=2048:2048", "nofile=1024:1024"]
[engine]
runtime = "runc"
"""
"""For Podman on a machine whose root may not raise limits, and has both kinds of control groups."""
_LEFT_OUT = re.compile(
    r"/(site-packages|dist-packages|__pycache__|test|tests|idlelib|tkinter|ensurepip|config-[^/]*)(/|$)"
)


@functools.cache
def working() -> tuple[str, ...] | None:
    """The command of an engine that runs a container here; None where none does."""
    for engine in (("docker",), ("podman",), ("env", f"CONTAINERS_CONF={_settings()}", "podman")):
        if shutil.which(engine[-1]) and _imported(engine) and _ran(engine):
            return engine
    return None


@functools.cache
def _settings() -> str:
    path = Path(os.environ.get("XDG_RUNTIME_DIR", "/tmp"), f"corpusforge-tests-{os.getuid()}.conf")
    path.write_text(_NO_PRIVILEGE, encoding="utf-8")
    return str(path)


def _ran(engine: tuple[str, ...]) -> bool:
    command = [*engine, "run", "--rm", "--network=none", IMAGE, "python3", "-c", "print(6 * 7)"]
    try:
        return subprocess.run(command, capture_output=True, timeout=60, check=False).stdout == b"42\n"
    except subprocess.TimeoutExpired:
        return False


def _imported(engine: tuple[str, ...]) -> bool:
    """Whether the image is there, made if need be."""
    try:
        if not subprocess.run(
            [*engine, "image", "inspect", IMAGE], capture_output=True, timeout=60, check=False
        ).returncode:
            return True
        told = subprocess.run(
            [*engine, "import", "-", IMAGE], input=_files(), capture_output=True, timeout=300, check=False
        )
    except subprocess.TimeoutExpired:
        return False
    return told.returncode == 0


@functools.cache
def _files() -> bytes:
    """The image's only layer: a tar archive."""
    python = Path(os.path.realpath(getattr(sys, "_base_executable", None) or sys.executable))
    library = Path(sysconfig.get_path("stdlib"))
    needed = sorted(
        {*_libraries(python), *(one for path in library.glob("lib-dynload/*.so") for one in _libraries(path))}
    )
    found = io.BytesIO()
    with tarfile.open(fileobj=found, mode="w") as archive:
        for path in (python, library):
            archive.add(path, filter=lambda one: None if _LEFT_OUT.search(f"/{one.name}") else one)
        for path in needed:
            archive.add(os.path.realpath(path), arcname=path)
        for folder in ("tmp", "run", "var/tmp", "dev", "proc", "sys", "etc", "scratch"):
            one = tarfile.TarInfo(folder)
            one.type, one.mode = tarfile.DIRTYPE, 0o755
            archive.addfile(one)
        link = tarfile.TarInfo("usr/bin/python3")
        link.type, link.linkname = tarfile.SYMTYPE, str(python)
        archive.addfile(link)
    return found.getvalue()


def _libraries(path: Path) -> list[str]:
    """Shared libraries that a file needs, as the loader finds them."""
    said = subprocess.run(["ldd", path], capture_output=True, text=True, check=False).stdout
    return re.findall(r"(?:=> )?(/\S+) \(", said)
