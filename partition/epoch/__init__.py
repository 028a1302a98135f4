"""The predicted time of an epoch, from measured prices."""
