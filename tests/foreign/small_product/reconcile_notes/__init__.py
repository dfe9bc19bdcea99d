"""Another author's product: a command, and an option of ``reconcile run`` that keeps a note beside the reports."""

from reconcile.core.product import Command, Product

PRODUCT = Product(
    name="notes",
    module=__name__,
    commands=(Command("notes", "Print the notes of past runs.", ".command:notes", heading="Notes of runs"),),
    run_options=(".run_options:NOTES",),
)
