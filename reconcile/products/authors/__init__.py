"""Tools for authors of counters (``reconcile counter``): conformance tests, draft rules, bug-report programs, templates."""

from ...core.product import Command, Product

PRODUCT = Product(
    name="authors",
    module=__name__,
    commands=(
        Command("zoo new", "Write a pair file to start from.", ".commands:new_pair", order=30),
        Command(
            "counter",
            "Write, test and draft a counter, and show its errors.",
            heading="For authors of counters",
            text="Write, test and draft a counter, and show its errors.\n\n"
            "`reconcile explain counters` lists the counters, and `reconcile run --counter NAME` runs one.",
        ),
        Command("counter new", "Write the package of a counter to start from.", ".commands:new_counter", order=10),
        Command("counter conform", "Run the conformance tests on a counter.", ".commands:conform", order=20),
        Command("counter draft", "Draft the rules of a counter that has none.", ".commands:draft_rules", order=30),
        Command(
            "counter reproduce",
            "Print the shortest program that shows a counter's error.",
            ".commands:reproduce",
            order=40,
        ),
    ),
    needs=("products.decode",),
)
