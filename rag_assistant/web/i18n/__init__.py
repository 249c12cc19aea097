"""The languages of the page: which there are, and what the page says in each of them.

English is the source: every text stands in the code in English, and a catalog, ``translations/CODE.po``, has what takes
its place. What goes to a model is not translated; nothing below ``web`` knows in which language it is shown.
"""
