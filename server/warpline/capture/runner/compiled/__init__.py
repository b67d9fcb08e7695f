"""Records what Dynamo and Inductor do."""
