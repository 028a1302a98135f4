"""Commands that say what ranks would do that are not there: replay, plan."""
