"""The questions of `holdup fleet` on Apache Spark, over the same data set, by the same SQL files.

    spark-submit fleet.py DATASET QUESTION...      one JSON document: {"causes": {"columns": [...], "rows": [[...]]}, ...}

DATASET is whatever Spark reads: a folder, s3a://BUCKET/PATH. QUESTION is the name of a file in ../sql. `--since`, `--until` and `--cut`
choose days; `--process`, `--function` and `--kind` say of what examples are wanted.
"""

import argparse
import json
import pathlib
import sys
import time

from pyspark.sql import SparkSession
from pyspark.sql.utils import AnalysisException

SQL = pathlib.Path(__file__).resolve().parent.parent / "sql"
TABLES = ["trace", "finding", "wait_site", "lock", "function", "stack", "build"]
# In the order in which they rest on each other.
VIEWS = ["trace", "finding", "function"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dataset")
    parser.add_argument("questions", nargs="+")
    parser.add_argument("--since", default="0000-00-00")
    parser.add_argument("--until", default="9999-99-99")
    parser.add_argument("--cut", default="9999-99-99")
    parser.add_argument("--process", default="")
    parser.add_argument("--function", default="")
    parser.add_argument("--kind", default="")
    parser.add_argument("--times", action="store_true", help="say on standard error how long each question took, in seconds")
    args = parser.parse_args()

    spark = SparkSession.builder.appName("holdup fleet").getOrCreate()
    # A host that is called 17 is no number, and a date is compared as it stands.
    spark.conf.set("spark.sql.sources.partitionColumnTypeInference.enabled", "false")
    for table in TABLES:
        try:
            rows = spark.read.option("basePath", f"{args.dataset}/{table}").parquet(f"{args.dataset}/{table}")
        except AnalysisException:
            # No trace has rows there: no question that is asked may need it.
            continue
        # The files of other days are not opened.
        chosen = rows.where((rows.date >= args.since) & (rows.date <= args.until))
        chosen.createOrReplaceTempView(f"all_{table}")
    one_row(spark, "chosen", args, ["since", "until", "cut"])
    one_row(spark, "wanted", args, ["process", "function", "kind"])
    for view in VIEWS:
        spark.sql(sql(f"views/{view}")).createOrReplaceTempView(view)

    answers = {}
    for question in args.questions:
        begun = time.monotonic()
        found = spark.sql(sql(question))
        answers[question] = {"columns": found.columns, "rows": [list(row) for row in found.collect()]}
        if args.times:
            print(f"{question} {time.monotonic() - begun:.2f}", file=sys.stderr)
    print(json.dumps(answers))
    spark.stop()


def sql(name):
    return (SQL / f"{name}.sql").read_text()


def one_row(spark, name, args, columns):
    values = [getattr(args, column) for column in columns]
    spark.createDataFrame([values], columns).createOrReplaceTempView(name)


if __name__ == "__main__":
    main()
