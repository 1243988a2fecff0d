"""Confined Python: a program runs with nothing but the standard library, a scratch folder and a few seconds.

    run("import socket; socket.create_connection(('10.0.0.1', 80))")   ->  Ran("error", …): permission denied
    run("while True: pass", limits=Limits(seconds=1))                  ->  Ran("timeout", …)

Four kinds of a process, all a `Child`: `_kernel` starts a fresh one behind the kernel's walls, `_forks` forks one from
an interpreter that waits behind them, `_containers` has one in a container, `_unconfined` one without walls. Which of
them the code of completions gets is decided in `_place`. What is inside with them: `_inside`, `_zygote`, `_warden`.
"""

from corpusforge.verify.sandbox._child import Child, run_in
from corpusforge.verify.sandbox._kernel import Confined, available, require, run
from corpusforge.verify.sandbox._limits import Limits, Outcome, Ran
from corpusforge.verify.sandbox._place import in_vain, where

__all__ = ["Child", "Confined", "Limits", "Outcome", "Ran", "available", "in_vain", "require", "run", "run_in", "where"]
