"""YAML in which no name stands twice in a mapping: of two lines for one experiment the earlier would be lost unseen."""

from typing import Any

import yaml


class _Loader(yaml.SafeLoader):
    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict:
        names = [key.value for key, _ in node.value]
        if twice := [name for name in names if names.count(name) > 1]:
            line = node.start_mark.line + 1
            raise yaml.YAMLError(f"{twice[0]!r} stands twice in the mapping that begins in line {line}")
        return super().construct_mapping(node, deep)


def load(text: str | bytes) -> Any:
    """
    >>> load("{a: 1, b: {c: 2}}")
    {'a': 1, 'b': {'c': 2}}
    >>> load("{a: 1, a: 2}")
    Traceback (most recent call last):
    yaml.error.YAMLError: 'a' stands twice in the mapping that begins in line 1
    """
    return yaml.load(text, _Loader)
