"""What confines a program: the policy of `sandlock` and the limits of the kernel.

Landlock guards files, TCP ports and signals, seccomp the system calls; see landlock(7) and seccomp(2). Trying what
they do not guard (tests/verify/test_sandbox.py keeps the trials) gave the list of calls that are denied by name:

    chmod, chown, utime, setxattr   Landlock does not watch them: they worked on files that may not even be read
    prlimit64, sched_setaffinity    they reach every process of the same user, the trainer too
    clock_settime, mknod            root could set the clock, and make the machine's disk a file of its own
    memfd_create, fallocate         memory and disk that no limit counts
    listen, accept                  `listen` without `bind` opened a port
    mq_open, io_setup               left a queue behind, though opening it was refused; a number that all share
    file_setattr, getxattr, …       neither does Landlock watch these
    inotify_*, listmount, cachestat tell what others do with files that may not be read

What depends on an argument, and what sandlock will not deny by name, is in `_filters`.

One process is held to its memory by the kernel (`RLIMIT_AS`). Sandlock's own count, which takes a message for every
piece that is asked for, is used only where there can be several: on a busy machine a right solution was killed that
passed when held again, and at its age nothing else kills.

The disk quota of sandlock is not used: it counts only when a file is opened, and rules out denying `chmod`. That a path
exists stays visible; what it holds does not.
"""

from __future__ import annotations

import functools
import math
import os
import platform
import sys
import sysconfig
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from corpusforge.verify.sandbox._limits import Limits

_LIBRARIES: Final = ("/lib", "/lib64", "/usr/lib", "/usr/lib64", "/etc/ld.so.cache", "/usr/share/zoneinfo")
PACKAGES: Final = ("site-packages", "dist-packages")
_DENIED: Final = (
    *("fchmod", "fchmodat", "fchmodat2", "fchown", "fchownat", "utimensat"),
    *("setxattr", "lsetxattr", "fsetxattr", "setxattrat", "removexattr", "lremovexattr", "fremovexattr"),
    *("clock_settime", "clock_adjtime", "settimeofday", "adjtimex"),
    *("setpriority", "sched_setscheduler", "sched_setparam", "sched_setattr", "sched_setaffinity", "ioprio_set"),
    *("mknodat", "chroot"),
    "prlimit64",
    *("memfd_create", "memfd_secret", "fallocate"),
    *("listen", "accept", "accept4"),
    *("mq_open", "mq_unlink", "io_setup", "file_setattr", "file_getattr", "open_tree_attr", "quotactl_fd"),
    *("getxattr", "lgetxattr", "fgetxattr", "getxattrat", "listxattr", "llistxattr", "flistxattr", "listxattrat"),
    *("inotify_init1", "inotify_add_watch", "statmount", "listmount", "cachestat"),
    *("sync", "syncfs", "syslog", "acct", "swapon", "reboot", "pidfd_open", "pidfd_getfd", "kcmp"),
)
_DENIED_X86: Final = (
    "chmod",
    "chown",
    "lchown",
    "utime",
    "utimes",
    "futimesat",
    "mknod",
    "inotify_init",
    "modify_ldt",
)  # old names, on x86 only


def bound(process: int, limits: Limits) -> None:
    """Set the kernel's limits of a process, from outside: from inside, the call for it would reach our processes."""
    import resource

    for name, soft, hard in limits_of(limits):
        resource.prlimit(process, getattr(resource, name), (soft, hard))


def limits_of(limits: Limits) -> list[tuple[str, int, int]]:
    """The kernel's limits of one process, by their names in `resource`, soft and hard."""
    memory, seconds, scratch = limits.memory_mib * 2**20, math.ceil(limits.seconds), limits.scratch_mib * 2**16
    return [
        ("RLIMIT_AS", memory, memory),
        ("RLIMIT_CPU", seconds, seconds + 1),  # a signal first, which says why
        ("RLIMIT_FSIZE", scratch, scratch),
        ("RLIMIT_NOFILE", limits.files, limits.files),
        ("RLIMIT_CORE", 0, 0),
    ]


def environment(folder: str) -> dict[str, str]:
    """All that a program finds in its environment."""
    return {"PYTHONHASHSEED": "0", "HOME": folder, "TMPDIR": folder, "LANG": "C.UTF-8"}


def policy(folder: Path, limits: Limits, random: bool) -> dict[str, Any]:
    """What sandlock is to allow: reading Python, writing in `folder`; the same random numbers every time, if any."""
    return {
        "fs_readable": [*readable()],
        "fs_denied": [*packages()],
        "fs_writable": [str(folder), "/dev/null"],
        "cwd": str(folder),
        "clean_env": True,
        "env": environment(str(folder)),
        "max_memory": (limits.memory_mib + 64) * 2**20 if limits.processes > 1 else None,
        "max_processes": limits.processes,
        "no_coredump": True,
        "random_seed": 0 if random else None,
        "extra_deny_syscalls": [*_DENIED, *(_DENIED_X86 if platform.machine() == "x86_64" else ())],
    }


@functools.cache
def packages() -> tuple[str, ...]:
    """Folders of installed packages inside of what is readable, which are no business of a solution.

    A package can hold what a task asks for: the answers of a benchmark are a pip install away.
    """
    beside = [Path(folder, name) for folder in standard() for name in PACKAGES]
    debian = [path for name in PACKAGES for path in Path("/usr/lib").glob(f"python3*/{name}")]
    return tuple(str(path) for path in (*beside, *debian) if path.exists())


@functools.cache
def interpreter() -> str:
    """The interpreter itself, not the one of a virtual environment: that has no more than the standard library."""
    return os.path.realpath(getattr(sys, "_base_executable", None) or sys.executable)


@functools.cache
def readable() -> tuple[str, ...]:
    """What an interpreter needs to start and to import the standard library: files, and folders with all below."""
    folder, name = sysconfig.get_config_var("LIBDIR") or "", sysconfig.get_config_var("INSTSONAME") or ""
    library = [str(Path(folder, name))] if name.endswith(".so") or ".so." in name else []
    devices = ["/dev/urandom", "/dev/zero"]
    paths = [interpreter(), *standard(), *library, *_LIBRARIES, *devices]
    return tuple(dict.fromkeys(path for path in paths if Path(path).exists()))


@functools.cache
def standard() -> tuple[str, ...]:
    """Folders of the standard library."""
    base = dict.fromkeys(("platbase", "installed_platbase"), sys.base_exec_prefix)
    paths = [sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib", vars=base)]
    return tuple(dict.fromkeys(os.path.realpath(path) for path in paths if path and Path(path).exists()))
