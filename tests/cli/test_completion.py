"""TAB offers the names that stand for a value, the files, and the keys of the scenario at hand."""

import re
import subprocess

import pytest
from typer.testing import CliRunner

from cprsim.cli.app import app
from tests.making import PROGRAM

SLOW = {"matplotlib", "numba", "numpy", "pandas", "scipy", "simpy"}  # TAB waits for none of them


def completed(words: str) -> list[str]:
    """What bash offers for the last word."""
    environment = {
        "_CPRSIM_COMPLETE": "complete_bash",
        "COMP_WORDS": words,
        "COMP_CWORD": str(len(words.split(" ")) - 1),
    }
    done = CliRunner().invoke(app, [], env=environment)
    assert (done.exit_code, done.stderr) == (0, "")
    return done.stdout.split()


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("cprsim sw", "sweep"),
        ("cprsim run sm", "small.yaml"),
        ("cprsim run quick", "quickstart"),
        ("cprsim run quickstart --repl", "--replications --replay"),
        ("cprsim run quickstart --replay m", "median"),
        ("cprsim run small.yaml --set recovery.cpr.target", "recovery.cpr.target_pls="),
        ("cprsim sweep --seed 3 small.yaml --over costs.sa", "costs.save="),
        ("cprsim run broken.yaml --set job.us", "job.useful="),
        ("cprsim run llm --set recovery.gemini.options.c", "recovery.gemini.options.copies="),
        ("cprsim run llm --set recovery.hsdp.options.copies", ""),
        ("cprsim run small.yaml --set failures.lemons", ""),  # those of one clock have none
        ("cprsim systems --explain gem", "gemini"),
        ("cprsim backtest log --recovery full,gem", "full,gemini"),
        ("cprsim rehearse small.yaml --strategies part", "partial"),
        ("cprsim select llm --curve criteo-kaggle-l", "criteo-kaggle-linear"),
        ("cprsim measure llm --strategy sca", "scar scar+"),
        ("cprsim fit --format slurm-", "slurm-events slurm-jobs"),
        ("cprsim init --kind ", "recommender llm"),
        ("cprsim init --failures llama", "llama3"),
        ("cprsim init --from quick", "quickstart"),
        ("cprsim reproduce fig-over", "fig-overheads"),
        ("cprsim sync shadowsync --beside fr-", "fr-easgd fr-ma fr-bmuf"),
    ],
)
def test_the_last_word_is_completed(scenario, words, offered) -> None:
    scenario.with_name("broken.yaml").write_text("job: [", "utf-8")
    scenario.with_name("small\x1b.yaml").touch()
    assert sorted(completed(words)) == sorted(offered.split())


@pytest.mark.parametrize("words", ["cprsim run quickstart --set ", "cprsim systems --only "])
def test_it_is_there_soon(monkeypatch, words) -> None:
    monkeypatch.setenv("_CPRSIM_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", words)
    monkeypatch.setenv("COMP_CWORD", str(len(words.split(" ")) - 1))
    python, *program = PROGRAM
    done = subprocess.run([python, "-X", "importtime", *program], capture_output=True, text=True)
    loaded = set(re.findall(r"\| +(\w+)", done.stderr))
    assert done.returncode == 0
    assert done.stdout
    assert "cprsim" in loaded
    assert not loaded & SLOW
