"""Models given as files: loaded without unpickling, in a confined process, unless the user trusts the file (--trust-file)."""

from ...core.product import Product

PRODUCT = Product(
    name="files",
    module=__name__,
    options=(".options:OPTIONS",),
    model_readers=(".kinds:read_models",),
    framework_fields=(
        ("torch", "help", "PyTorch model: its function, or its file."),
        ("torch", "metavar", "MODULE:FUNCTION|FILE"),
        ("torch", "files", (("exported_program", "a torch.export archive"), ("torchscript", "a TorchScript archive"))),
        ("torch", "loader", ".products.files.pytorch.load"),
        ("tf", "help", "TensorFlow model: its function, or its file."),
        ("tf", "metavar", "MODULE:FUNCTION|FILE"),
        (
            "tf",
            "files",
            (
                ("graph_def", "a frozen TensorFlow graph"),
                ("saved_model", "a SavedModel"),
                ("keras", "a Keras model"),
                ("keras_h5", "a Keras model in HDF5"),
            ),
        ),
        ("tf", "loader", ".products.files.tensorflow.load"),
    ),
)
