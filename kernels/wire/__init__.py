"""Gathering rows for messages, and narrow number formats on the wire."""
