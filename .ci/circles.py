"""Files of a crate that import each other in a circle.

A file that is in a circle cannot be read, tested or moved without the others. What counts are the
paths of a file (`use` and others that begin with crate, super or self), tests left out; a module may
use what the modules around it hold.
"""

import re

COMMENT = re.compile(r"//[^\n]*")
USE = re.compile(r"^\s*(?:pub(?:\([^)]*\))?\s+)?use\s+([^;]+);", re.MULTILINE)
PATH = re.compile(r"\b(?:crate|super|self)(?:::\w+)+")
NAME = re.compile(r"(?<![\w:])([a-z_]\w*)::")


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


def crates(text):
    """The first names of all paths: crates, and modules that are in scope."""
    return set(NAME.findall(COMMENT.sub("", text)))


def exported(known):
    """Module by name, for all that the root of a crate exports under a name of its own."""
    root = known[()].with_name("lib.rs") if () in known else None
    if root is None or not root.exists():
        return {}
    paths_of = [path for tree in USE.findall(COMMENT.sub("", root.read_text()))
                for path in expanded(" ".join(tree.split()))]
    return {path.split("::")[-1]: meant((), path, known) for path in paths_of}


def arrows(src):
    known = modules(src)
    root = exported(known)
    imports = {}
    for module, file in known.items():
        used = list(paths(file.read_text()))
        targets = {meant(module, path, known) for path in used}
        # `crate::Recording` is what the root has from elsewhere.
        if module:
            names = {path.split("::")[1].strip() for path in used if path.startswith("crate::")}
            targets |= {root[name] for name in names if name in root}
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
