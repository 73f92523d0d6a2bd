"""The second executor of the contract of `etwhy fleet`: Spark reads the traces, Iceberg keeps the rows.

Read in this order: `program` (what the program says and does), `contract` (tables), `job` (a run), `questions` (views).
"""
