"""What the red team's tests share: a line that says how many submissions there are."""


def pytest_terminal_summary(terminalreporter):
    """Count the submissions, where the tests that grade them were among those run."""
    reports = [r for part in ("passed", "failed") for r in terminalreporter.stats.get(part, [])]
    if any("test_redteam_class" in report.nodeid for report in reports):
        import torch_course
        from test_redteam_class import ATTACKS

        threats = {threat for attack in ATTACKS for threat in attack.threats}
        everywhere = sum(attack.everywhere for attack in ATTACKS)
        terminalreporter.write_line(
            f"red team: {len(ATTACKS)} submissions of attention, {everywhere} of them at both "
            f"levels, and {len(torch_course.ATTACKS)} with torch; {len(threats)} threats"
        )
