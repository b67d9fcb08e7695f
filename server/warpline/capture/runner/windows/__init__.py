"""The windows of a measurement, and the recording in them."""
