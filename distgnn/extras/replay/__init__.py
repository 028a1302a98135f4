"""What a cluster would do: every part measured alone, and the messages of all ranks played through a network model."""
