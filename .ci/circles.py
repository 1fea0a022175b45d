"""Files of a crate that import each other in a circle.

A file that is in a circle cannot be read, tested or moved without the others. What counts are the
paths of a file (`use` and others that begin with crate, super or self), tests left out; a module may
use what the modules around it hold.
"""

import re

COMMENT = re.compile(r"//[^\n]*")
USE = re.compile(r"^\s*(?:pub(?:\([^)]*\))?\s+)?use\s+([^;]+);", re.MULTILINE)
PATH = re.compile(r"\b(?:crate|super|self)(?:::\w+)+")


def modules(src):
    """Path of the module (a tuple) by file, for all files of a crate's src folder."""
    found = {}
    for file in src.rglob("*.rs"):
        path = file.relative_to(src).with_suffix("").parts
        if "tests" not in path:
            found[path[:-1] if path[-1] in ("mod", "lib", "main") else path] = file
    return found


def expanded(tree):
    """The paths of a use tree: `a::{b, c::d}` are a::b and a::c::d."""
    head, brace, rest = tree.partition("{")
    if not brace:
        return [head.split(" as ")[0].strip()]
    parts, depth, part = [], 0, ""
    for letter in rest[: rest.rindex("}")]:
        depth += (letter == "{") - (letter == "}")
        if letter == "," and depth == 0:
            parts.append(part)
            part = ""
        else:
            part += letter
    paths = [path for part in parts + [part] if part.strip() for path in expanded(part)]
    return [head.strip() + path for path in paths]


def paths(text):
    text = COMMENT.sub("", text.split("#[cfg(test)]\nmod tests {")[0])
    for tree in USE.findall(text):
        yield from expanded(" ".join(tree.split()))
    yield from PATH.findall(USE.sub("", text))


def meant(module, path, known):
    """The module of the crate that a path in `module` leads to, or into."""
    parts = [part.strip() for part in path.split("::")]
    if parts[0] == "crate":
        at = parts[1:]
    elif parts[0] in ("super", "self"):
        at = list(module)
        for part in parts:
            at = at[:-1] if part == "super" else at if part == "self" else at + [part]
    else:
        at = list(module) + parts
    while at and tuple(at) not in known:
        at = at[:-1]
    return tuple(at)


def arrows(src):
    known = modules(src)
    imports = {}
    for module, file in known.items():
        targets = {meant(module, path, known) for path in paths(file.read_text())}
        imports[module] = {t for t in targets if t and module[: len(t)] != t}
    return imports


def circles(src):
    """The circles of a crate, the largest first: lists of module names."""
    imports = arrows(src)

    def reached(start):
        seen, left = set(), [start]
        while left:
            for target in imports.get(left.pop(), ()):
                if target not in seen:
                    seen.add(target)
                    left.append(target)
        return seen

    reach = {module: reached(module) for module in imports}
    found, done = [], set()
    for module in sorted(imports):
        if module in done or module not in reach[module]:
            continue
        circle = [other for other in reach[module] if module in reach[other]]
        done.update(circle)
        found.append(sorted("::".join(other) for other in circle))
    return sorted(found, key=len, reverse=True)
