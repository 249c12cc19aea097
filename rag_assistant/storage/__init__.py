"""Everything that is kept, in SQL. SQLAlchemy lives here and nowhere else; callers get records, never rows."""
