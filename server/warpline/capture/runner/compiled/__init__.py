"""What Dynamo and Inductor do to the script."""
