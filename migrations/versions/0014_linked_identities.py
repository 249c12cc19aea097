"""By which accounts elsewhere a person is known, and which sessions began with one of them."""

revision = "0014"
down_revision = "0013"

import sqlalchemy as sa
from alembic import op

MOMENT = sa.DateTime(timezone=True)


def upgrade() -> None:
    op.create_table(
        "linked_identities",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("person_id", sa.Integer, sa.ForeignKey("people.id", ondelete="CASCADE"), nullable=False),
        sa.Column("issuer", sa.String, nullable=False),
        sa.Column("subject", sa.String, nullable=False),
        sa.Column("label", sa.String, nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("used_at", MOMENT),
        sa.UniqueConstraint("issuer", "subject"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_linked_identities_person", "linked_identities", ["person_id"])
    op.add_column("sessions", sa.Column("identity_id", sa.Integer))


def downgrade() -> None:
    op.drop_column("sessions", "identity_id")
    op.drop_table("linked_identities")
