"""Many modules become one script, or a sentence about the statement that is not understood."""

import re

import pytest

from rag_assistant.web.assets import bundle

MODULES = {
    "main.js": 'import { greet, Name } from "./lib/greet.js";\nimport { count } from "./count.js";\n\n'
    "export const told = greet(new Name()) + count.times;\n",
    "count.js": "export const count = { times: 0 };\n",
    "lib/greet.js": 'import { count } from "../count.js";\n\nconst word = "Hello";\n'
    'export class Name { text = "import { x } from"; }\n'
    "export function greet(name) { count.times += 1; return `${word} ${name.text}`; }\n"
    "export async function later() {}\n",
}


def test_what_is_imported_stands_before_who_imports_it_and_once() -> None:
    names = re.findall(r'^modules\["(.+)"\] = ', bundle(MODULES, "main.js"), re.MULTILINE)
    assert names == ["count.js", "lib/greet.js", "main.js"]


def test_a_module_exports_what_it_declares_so() -> None:
    script = bundle(MODULES, "main.js")
    assert "return { Name, greet, later };" in script
    assert 'const { greet, Name } = modules["lib/greet.js"];' in script
    assert not re.search(r"^(?:import|export (?!\{ modules \}))", script, re.MULTILINE)


@pytest.mark.parametrize(
    "statement",
    ['import * as all from "./a.js";', "export default 1;", "export let a = 1;", 'export { a } from "./a.js";'],
)
def test_what_is_not_understood_is_named(statement: str) -> None:
    with pytest.raises(ValueError, match=r"main\.js: this cannot be bundled: " + re.escape(statement[:12])):
        bundle({"main.js": statement + "\n", "a.js": ""}, "main.js")


def test_a_circle_and_a_module_that_is_missing_are_named() -> None:
    with pytest.raises(ValueError, match=r"a\.js imports itself by way of a\.js, b\.js"):
        bundle({"a.js": 'import { b } from "./b.js";\n', "b.js": 'import { a } from "./a.js";\n'}, "a.js")
    with pytest.raises(KeyError, match=r"none\.js"):
        bundle({"a.js": 'import { b } from "./none.js";\n'}, "a.js")
