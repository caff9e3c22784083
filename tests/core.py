"""The sessions with real processes that ``make test`` runs: one or two for each main path.

They get the mark ``core``. ``make test-all`` runs them too, with all others of their modules.
"""

from __future__ import annotations

from collections.abc import Mapping

MOST = 40
"""How many there may be: ``make test`` ends within 6 minutes on two quiet cores."""
CORE: Mapping[str, tuple[str, ...]] = {
    "api/test_inference.py": ("test_accuracy_compares_the_measured_output_with_float64",),
    "api/test_scripts.py": ("test_each_timer_is_a_case_named_by_its_labels_and_threads",),
    "api/test_training_step.py": ("test_every_mode_takes_the_same_steps",),
    "cli/test_asv_suite.py": (
        "test_the_suite_that_asvs_configuration_names_is_found_and_measured",
    ),
    "cli/test_bisect.py": (
        "test_the_slower_commit_is_found_with_its_size_and_a_line_that_replays_it",
    ),
    "cli/test_calibrate.py": ("test_a_calibration_says_what_it_sees",),
    "cli/test_check_cut_short.py": (
        "test_an_interrupted_check_reports_what_it_has_and_a_second_signal_loses_nothing",
    ),
    "cli/test_command_results.py": (
        "test_each_result_of_a_suite_is_compared_and_what_fails_is_named",
    ),
    "cli/test_compare.py": (
        "test_two_pythons_can_be_compared",
        "test_working_memory_that_doubled_fails",
    ),
    "cli/test_compare_serving.py": (
        "test_requests_of_the_sides_are_never_in_flight_at_once",
        "test_no_server_outlives_a_session_that_is_killed",
    ),
    "cli/test_explain.py": ("test_extra_copies_are_named_with_their_line",),
    "cli/test_hostile_ends.py": (
        "test_an_interrupted_compare_leaves_a_report_and_is_no_pass[2]",
        "test_an_interrupted_baseline_is_not_stored",
        "test_a_failing_build_is_no_verdict",
    ),
    "cli/test_misbehaving.py": ("test_what_fails_on_head_only_is_an_error_and_the_others_go_on",),
    "cli/test_pytest_suite.py": (
        "test_each_side_runs_its_own_code_and_has_its_own_commits_configuration_of_pytest[pyproject",
        "test_a_case_for_each_test_and_set_of_parameters_that_measures",
    ),
    "commands/nightly/test_failures.py": (
        "test_a_commit_of_before_the_package_moved_is_recorded_and_older_gaps_are_filled",
    ),
    "commands/nightly/test_filling.py": (
        "test_what_ends_a_night_costs_the_commit_in_the_works_alone[9]",
    ),
    "commands/test_library.py": ("test_two_commits_are_compared_without_a_word",),
    "machine/test_launcher.py": ("test_workers_and_builds_start_behind_it",),
    "matrix/test_matrix.py": (
        "test_each_side_runs_its_own_code[flat, setuptools, compiled]",
        "test_each_side_runs_its_own_code[src, setuptools, compat, pure]",
    ),
    "slurm/test_slurm.py": ("test_shards_are_merged_and_leave_no_folder",),
    "worker/test_distributed.py": ("test_the_examples_make_their_steps[ddp]",),
    "worker/test_torchrun.py": ("test_the_example_trains_by_the_steps_that_it_gives[ddp]",),
    "workflows/test_action.py": ("test_with_a_real_perfci_the_outputs_say_what_it_found",),
}
"""By module below ``tests/``, the names of tests, some with the beginning of their parameters."""


def is_core(node: str) -> bool:
    """Return whether the test with pytest's id ``node`` is among them."""
    module, _, name = node.removeprefix("tests/").partition("::")
    return any(
        name.startswith(test) if "[" in test else name == test for test in CORE.get(module, ())
    )
