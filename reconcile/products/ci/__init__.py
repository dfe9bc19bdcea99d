"""What ``reconcile check --format`` prints for GitHub, for services that keep numbers, and for readers of JUnit's results."""

from ...core.product import Product

PRODUCT = Product(
    name="ci",
    module=__name__,
    check_formats=(
        ("github", ".github:write_for_github"),
        ("bencher", ".ci_formats:format_bencher"),
        ("github-action-benchmark", ".ci_formats:format_github_action_benchmark"),
        ("junit", ".ci_formats:format_junit"),
    ),
)
