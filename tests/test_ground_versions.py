"""pyproject.toml (ranges), requirements.lock (pins) and environment.yml (the same pins) agree, here and now."""

import re
import tomllib
from importlib.metadata import metadata, version

import pytest
import yaml
from conftest import ROOT
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = PROJECT["optional-dependencies"]


def lock() -> list[str]:
    return [line for line in (ROOT / "requirements.lock").read_text().splitlines() if not line.startswith("#")]


def pins() -> dict[str, Version]:
    found = [re.fullmatch(r"([\w.-]+)==([\w.]+)", line) for line in lock()]
    assert all(found), "every line of requirements.lock is name==version"
    return {canonicalize_name(match[1]): Version(match[2]) for match in found}


@pytest.mark.parametrize("text", sum(EXTRAS.values(), PROJECT["dependencies"]))
def test_every_range_holds_its_pin(text):
    requirement = Requirement(text)
    pin = pins().get(canonicalize_name(requirement.name))
    assert pin is not None, f"{requirement.name} is not in requirements.lock; run `make lock`"
    assert requirement.specifier.contains(pin), f"{text} excludes the pinned {pin}; run `make lock`"


def test_environment_has_exactly_the_locked_pins():
    environment = yaml.safe_load((ROOT / "environment.yml").read_text())
    python, pip, packages = environment["dependencies"]
    assert python == "python=3.11" and pip == "pip"
    assert Version("3.11") in Requirement("python" + PROJECT["requires-python"]).specifier
    assert packages["pip"] == [*lock(), "-e ."]


def test_the_tests_run_on_the_locked_versions():
    others = {name: version(name) for name, pin in pins().items() if Version(Version(version(name)).public) != pin}
    assert not others, f"installed in other versions than locked: {others}; run `make setup`"


def test_every_locked_version_accepts_the_oldest_python_allowed():
    oldest = re.search(r">=([\d.]+)", PROJECT["requires-python"])[1] + ".0"
    needs = {name: metadata(name).get("Requires-Python") for name in pins()}
    assert not {name: need for name, need in needs.items() if need and Version(oldest) not in SpecifierSet(need)}


def test_torch_is_pinned_exactly_and_without_a_build():
    assert "torch==2.13.0" in PROJECT["dependencies"] and "torch==2.13.0" in lock()


@pytest.mark.parametrize("name", ["requirements.lock", "environment.yml", "pyproject.toml", ".pre-commit-config.yaml"])
def test_no_host_or_folder_of_one_machine_is_named(name):
    text = (ROOT / name).read_text()
    assert not re.search(r"://|--index|--find-links|--hash|\bfile:|/(opt|home|root)/", text)
