"""What pyproject.toml can't say: the scenarios go into the package, the README into the metadata.

The scenarios stand at the top of the repository, where readers look for them, and in a wheel in
``cprsim/scenario/shipped``, where `cprsim.shipping` looks for them. The README shows
images and links to files beside it, which no index has: there it goes without.
"""

from __future__ import annotations

import re
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

SCENARIOS = Path("scenarios")
SHIPPED = Path("cprsim", "scenario", "shipped")
COMMENT = re.compile(r"<!--.*?-->\n*", re.DOTALL)
IMAGE = re.compile(r"!\[[^\]]*\]\([^)]*\)")
LINK_TO_A_FILE = re.compile(r"\[([^\]]*)\]\((?!https?://|#)[^)]*\)")
EMPTY_TABLE = re.compile(r"^[|\s]*\|\n\|[-|]+\|\n", re.MULTILINE)


def readme() -> str:
    """The README for a reader who has no files beside it."""
    text = Path("README.md").read_text("utf-8")
    text = LINK_TO_A_FILE.sub(r"\1", IMAGE.sub("", COMMENT.sub("", text)))
    return re.sub(r"\n{3,}", "\n\n", EMPTY_TABLE.sub("", text))


class WithScenarios(build_py):
    """Modules and data of the package, and the folder of the scenarios."""

    def run(self) -> None:
        """Copy the scenarios, too; an editable install finds them where they are."""
        super().run()
        if not self.editable_mode:
            self.mkpath(str(Path(self.build_lib, SHIPPED)))
            for built, source in self._scenarios().items():
                self.copy_file(source, built)

    def get_source_files(self) -> list[str]:
        """What a source distribution needs."""
        return [*super().get_source_files(), *self._scenarios().values()]

    def get_outputs(self, include_bytecode: bool = True) -> list[str]:
        """What is built."""
        copied = [] if self.editable_mode else self._scenarios()
        return [*super().get_outputs(include_bytecode), *copied]

    def _scenarios(self) -> dict[str, str]:
        """Source of each file, by where it is built."""
        sources = sorted(path for path in SCENARIOS.iterdir() if path.is_file())
        return {str(Path(self.build_lib, SHIPPED, path.name)): str(path) for path in sources}


setup(
    cmdclass={"build_py": WithScenarios},
    long_description=readme(),
    long_description_content_type="text/markdown",
)
