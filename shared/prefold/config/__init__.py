"""Settings, logging and the life of a process: what every role's composition root starts with."""
