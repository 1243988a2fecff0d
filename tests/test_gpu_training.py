"""benchmarks/gpu_training.py: the dry run trains both sides of every stage on a CPU."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("trl", reason="training needs the extra `train`")
SCRIPT = Path(__file__).resolve().parent.parent / "benchmarks" / "gpu_training.py"


@pytest.mark.slow
def test_the_dry_run_counts_the_same_tokens_on_both_sides(tmp_path):
    ran = subprocess.run(
        [sys.executable, str(SCRIPT), "--dry-run"],
        env={**os.environ, "HF_HUB_OFFLINE": "1", "HF_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr[-2_000:]
    *shown, last = ran.stdout.splitlines()
    assert sum(line.startswith(("sft", "dpo", "grpo")) for line in shown) == 6
    tokens = {(one["stage"], one["side"]): one["tokens"] for one in json.loads(last)["runs"]}
    assert len(tokens) == 6
    assert all(tokens[stage, "trl"] == tokens[stage, "corpusforge"] > 0 for stage in ("sft", "dpo", "grpo"))
