"""Settings of a run as dataclasses, checked before anything starts."""
