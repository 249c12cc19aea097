"""What every endpoint answers, recorded: walls may move, answers do not change by accident."""
