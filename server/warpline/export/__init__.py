"""A run in the formats of other tools: Perfetto's, and TensorBoard's log folder."""
