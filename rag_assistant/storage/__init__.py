"""The SQL storage. SQLAlchemy is used nowhere else; callers get records, never rows."""
