#!/bin/sh
# Stands for stepscope-sql in the tests of the server. What it does, the words of the query say; what it was called with
# and what runs is written beside the input.
arguments=$*
while [ $# -gt 0 ]; do
  case $1 in
    --tables=*) tables=${1#--tables=} ;;
    --input=*) folder=$(dirname "${1#--input=}") ;;
    --parquet) parquet=$2; shift ;;
    --csv) csv=yes ;;
    --pages) pages=yes ;;
    --schema) schema=yes ;;
  esac
  shift
done
query=$(cat)
printf '%s\n%s\n' "$arguments" "$query" > "$folder/called"
if [ -n "$schema" ]; then
  echo x >> "$folder/schemas"
  echo '{"tables":[{"name":"slice","row":"a slice","columns":[]}],"functions":[],"examples":[]}'
  exit
fi
case $query in
  *wrong*)
    if [ -n "$csv" ]; then
      printf 'error: no column `nme`\n   at: line 1, column 8\n hint: did you mean name?\n' >&2
    else
      echo '{"error":{"what":"no column `nme`","where":"line 1, column 8","hint":"did you mean name?"}}'
    fi
    exit 1 ;;
  *slow*)
    if [ -n "$csv" ]; then echo name; fi
    # What it calls runs on its own.
    sleep 600 &
    echo $$ $! > "$folder/pids.part"
    mv "$folder/pids.part" "$folder/pids"
    wait ;;
  *breaks*)
    echo name; exit 3 ;;
  *killed*)
    kill -9 $$ ;;
  *nothing*)
    exit ;;
  *pages*)
    for row in 1 2; do
      echo '{"columns":[],"rows":[['$row']],"is_complete":false}'
    done
    echo $$ > "$folder/pid"
    case $query in
      *last*) exit 3 ;;
      *stay*) sleep 600 ;;
    esac
    echo '{"columns":[],"rows":[[3]],"is_complete":true}'
    exit ;;
esac
if [ -n "$parquet" ]; then
  ls "${tables#*=}" > "$parquet"
elif [ -n "$csv" ]; then
  printf 'name\na\nb\n'
else
  echo '{"columns":[{"name":"n","type":"int","unit":"count","doc":null}],"rows":[[9007199254740993]],"is_complete":true}'
fi
