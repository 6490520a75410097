"""The databases that the tests run on."""

import sqlalchemy as sa


def test_a_fresh_database_takes_text_of_every_kind(url):
    engine = sa.create_engine(url, poolclass=sa.NullPool)
    table = sa.Table("texts", sa.MetaData(), sa.Column("text", sa.Text))
    text = "Liège 北京 🎈 �"
    with engine.begin() as connection:
        assert sa.inspect(connection).get_table_names() == []
        table.create(connection)
        connection.execute(table.insert(), [{"text": text}])
    with engine.connect() as connection:
        assert connection.execute(sa.select(table.c.text)).scalars().all() == [text]
    engine.dispose()
