"""Values far out: which are set aside, and that chance alone hardly ever makes one."""

from __future__ import annotations

import numpy as np
import pytest

from perfci.stats.evidence import paired_evidence
from perfci.stats.outliers import outlier_indices
from perfci.stats.student import Resolution

# Rosner 1983, as in the NIST Engineering Statistics Handbook 1.3.5.17.3: three outliers at 5 %
ROSNER = (
    -0.25, 0.68, 0.94, 1.15, 1.20, 1.26, 1.26, 1.34, 1.38, 1.43, 1.49, 1.49, 1.55, 1.56, 1.58,
    1.65, 1.69, 1.70, 1.76, 1.77, 1.81, 1.91, 1.94, 1.96, 1.99, 2.06, 2.09, 2.10, 2.14, 2.15,
    2.23, 2.24, 2.26, 2.35, 2.37, 2.40, 2.47, 2.54, 2.62, 2.64, 2.90, 2.92, 2.92, 2.93, 3.21,
    3.26, 3.30, 3.59, 3.68, 4.30, 4.64, 5.34, 5.42, 6.01,
)  # fmt: skip


def test_rosners_own_example_comes_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("perfci.stats.outliers.SIGNIFICANCE", 0.05)
    assert [ROSNER[index] for index in outlier_indices(ROSNER)] == [5.34, 5.42, 6.01]


def test_a_round_that_another_tenant_disturbed_is_found_and_its_index_given() -> None:
    assert outlier_indices((0.001, -0.002, 0.3, 0.002, 0.0, -0.001, 0.001)) == (2,)


def test_two_far_values_do_not_hide_each_other() -> None:
    values = (0.001, -0.002, 0.3, 0.002, 0.0, -0.001, 0.31, 0.001, -0.001, 0.0005)
    assert outlier_indices(values) == (2, 6)


def test_five_rounds_are_never_made_fewer() -> None:
    assert outlier_indices((0.0, 0.001, -0.001, 0.002, 9.0)) == ()


def test_what_rounding_does_is_not_far_out() -> None:
    assert (
        outlier_indices((0.0, 0.0, 1e-16, 0.0, 0.0, 0.0, 0.0), resolution=Resolution(1e-12)) == ()
    )


def test_one_step_of_a_counter_beside_identical_values_is_no_outlier() -> None:
    values = (0.0,) * 7 + (4096.0,)
    assert outlier_indices(values) == (7,)
    assert outlier_indices(values, resolution=Resolution(step=4096.0)) == ()
    assert outlier_indices((*values[:7], 81920.0), resolution=Resolution(step=4096.0)) == (7,)


def test_chance_alone_is_set_aside_about_once_in_a_thousand_samples() -> None:
    rng = np.random.default_rng(1)
    found = sum(bool(outlier_indices(rng.normal(size=9).tolist())) for _ in range(4000))
    assert found <= 14


def test_the_evidence_of_pairs_is_without_the_pair_that_is_far_out() -> None:
    base = (1.0, 1.01, 0.99, 1.0, 1.02, 1.0, 0.98)
    head = (1.101, 1.110, 1.29, 1.099, 1.123, 1.1, 1.078)
    evidence = paired_evidence(base, head, alpha=0.01)
    kept = [index for index in range(7) if index != 2]
    plain = paired_evidence([base[i] for i in kept], [head[i] for i in kept], alpha=0.01)
    assert evidence.outliers == (2,)
    assert (evidence.ratio, evidence.p, evidence.df) == (plain.ratio, plain.p, 5)
