"""Reading TensorFlow graphs: nodes, loops, shapes."""
