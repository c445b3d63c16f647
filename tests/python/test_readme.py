"""README's commands exist, as the installed package has them."""

import re


def test_commands_of_the_readme_exist(checkout, stepscope):
    readme = (checkout / "README.md").read_text()
    blocks = "\n".join(re.findall(r"^```\w*\n(.*?)^```", readme, flags=re.DOTALL | re.MULTILINE))
    names = sorted(set(re.findall(r"^(?:\$ )?stepscope ([a-z]+)", blocks, flags=re.MULTILINE)))
    assert names, "README.md shows no command"
    for name in names:
        stepscope(name, "--help")
