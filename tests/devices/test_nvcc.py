"""The CUDA compiler: where it is found, and what is read from its report."""

import pytest

from gauge_mc.devices.base import Registers
from gauge_mc.devices.cuda import nvcc


def program(path, words="Cuda compilation tools, release 12.4, V12.4.131"):
    """Write a program that only states its version."""
    path.parent.mkdir(parents=True)
    path.write_text(f"#!/bin/sh\necho '{words}'\n")
    path.chmod(0o755)
    return str(path)


@pytest.fixture
def nowhere(tmp_path, monkeypatch):
    """No nvcc at any of the usual places."""
    for name in ("CUDA_HOME", "CUDA_PATH"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(nvcc, "USUAL_HOME", str(tmp_path / "usual"))
    monkeypatch.setattr(nvcc, "wheel_folders", list)
    return tmp_path


def test_where_nvcc_is_found(nowhere, monkeypatch):
    """On PATH, before the toolkit that is named or else the usual one, before wheels."""
    assert nvcc.find_nvcc() is None
    wheel = program(nowhere / "cu13" / "bin" / "nvcc")
    monkeypatch.setattr(nvcc, "wheel_folders", lambda: [nowhere / "cu12", nowhere / "cu13"])
    assert nvcc.find_nvcc() == wheel
    usual = program(nowhere / "usual" / "bin" / "nvcc")
    assert nvcc.find_nvcc() == usual
    monkeypatch.setenv("CUDA_PATH", str(nowhere / "path"))
    assert nvcc.find_nvcc() == wheel
    by_path = program(nowhere / "path" / "bin" / "nvcc")
    assert nvcc.find_nvcc() == by_path
    monkeypatch.setenv("CUDA_HOME", str(nowhere / "home"))
    assert nvcc.find_nvcc() == by_path
    by_home = program(nowhere / "home" / "bin" / "nvcc")
    assert nvcc.find_nvcc() == by_home
    monkeypatch.setenv("PATH", str(nowhere / "usual" / "bin"))
    assert nvcc.find_nvcc() == usual


def test_a_file_that_cannot_be_run_is_not_nvcc(nowhere):
    program(nowhere / "usual" / "bin" / "nvcc")
    (nowhere / "usual" / "bin" / "nvcc").chmod(0o644)
    assert nvcc.find_nvcc() is None


def test_the_release(nowhere):
    found = program(nowhere / "a" / "nvcc")
    assert nvcc.release(found) == (12, 4)
    assert nvcc.describe(found) == f"Cuda compilation tools, release 12.4, V12.4.131, {found}"
    odd = program(nowhere / "b" / "nvcc", "something else")
    assert nvcc.release(odd) is None
    assert nvcc.describe(odd) == f"unknown release, {odd}"
    assert nvcc.release(str(nowhere / "none")) is None


def test_register_report():
    report = """entry function 'step_sweep'
    0 bytes spill stores, 0 bytes spill loads\nptxas info : Used 80 registers, used 0
    entry function 'step'
    16 bytes spill stores, 20 bytes spill loads\nptxas info : Used 96 registers, used 0"""
    assert nvcc.registers_of(report, "step") == Registers(96, 36)
    assert nvcc.registers_of(report, "step_sweep") == Registers(80, 0)
    assert nvcc.registers_of(report, "other") is None
