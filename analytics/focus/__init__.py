"""The FOCUS export: priced device-time as cost and usage rows of the FinOps specification."""
