"""May this SQL run? Decided on DuckDB's own parse tree, never on the text.

A person who knows SQL brings the statement, so I7 (SQL never contains a caller's string) cannot
mean here what it means elsewhere: nothing of ours is put together with it. It is handed to the
engine whole, as the one statement the engine's parser found in it, or not at all. What the parser
found has to pass three gates:

1. exactly one statement, and it is a SELECT;
2. every relation it reads is a documented view, or a name it defined itself with WITH;
3. every function it calls is on the list below. A function that is new in some later DuckDB is
   refused until somebody has looked at it.

A fourth gate does not trust the other three: ``reading`` runs it on an engine whose access to
files, network, extensions and settings is shut, with the store attached for reading only.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from hypatia_mem.errors import HypatiaError, Refused, UsageError

if TYPE_CHECKING:
    import duckdb

__all__ = ["FUNCTIONS", "MAX_CHARS", "TABLE_FUNCTIONS", "check", "understood"]

MAX_CHARS = 100_000  # of one statement; far above what a person writes
_SCHEMA = "See what there is with: hypatia-mem sql --schema"
_READS = "Here one reads. To change something: hypatia-mem --help"
_OUT = "To write a file: --csv, --json or --parquet, with --output FILE."
_HINTS: Mapping[str, str] = {
    "COPY": _OUT,
    "EXPORT": _OUT,
    "COPY_DATABASE": "For a copy of the whole memory: hypatia-mem export",
    "ATTACH": "No other file can be opened here. " + _SCHEMA,
    "DETACH": _SCHEMA,
    "LOAD": "No extension is loaded here.",
    "CALL": _SCHEMA,
    "PRAGMA": "The columns of the views: hypatia-mem sql --schema",
    "SET": "The engine's settings are fixed here.",
    "VARIABLE_SET": "Write the value where it is used, or in a WITH.",
    "EXPLAIN": "Run the SELECT itself; a plan would show what the views hide.",
    "PREPARE": "Write the SELECT itself.",
    "EXECUTE": "Write the SELECT itself.",
    "TRANSACTION": "One SELECT is one transaction.",
}

# Tables that functions make. All others read files, settings, the catalog or run further SQL.
TABLE_FUNCTIONS = frozenset({"generate_series", "json_each", "json_tree", "range", "unnest"})

# Pure functions, and the clock and the dice. Left out on purpose: what runs or makes SQL
# (json_*serialize*), tells or changes the engine's state (current_setting, getvariable, nextval,
# write_log, pg_*), waits (sleep_ms), builds gigabytes in one step (range and the like outside FROM,
# *_resize), or fails on demand (error, assert_true).
_WORDS = """
    abs acos acosh add age aggregate ago alias any_value apply approx_count_distinct
    approx_quantile approx_top_k arbitrary arg_max arg_max_null arg_max_nulls_last arg_min
    arg_min_null arg_min_nulls_last argmax argmin array_agg array_aggr array_aggregate array_append
    array_apply array_cat array_concat array_contains array_cosine_distance array_cosine_similarity
    array_cross_product array_distance array_distinct array_dot_product array_extract array_filter
    array_grade_up array_has array_has_all array_has_any array_indexof array_inner_product
    array_intersect array_length array_negative_dot_product array_negative_inner_product
    array_pop_back array_pop_front array_position array_prepend array_push_back array_push_front
    array_reduce array_reverse array_reverse_sort array_select array_slice array_sort array_to_json
    array_to_string array_transform array_unique array_value array_where array_zip ascii asin asinh
    atan atan2 atanh avg bar base64 bin bit_and bit_count bit_length bit_or bit_position bit_xor
    bitstring bitstring_agg bool_and bool_or cardinality cbrt ceil ceiling century char_length
    character_length chr concat concat_ws contains corr cos cosh cot count count_if count_star
    countif covar_pop covar_samp cume_dist current_date current_localtime current_localtimestamp
    damerau_levenshtein date_add date_diff date_part date_sub date_trunc datediff datepart datesub
    datetrunc day dayname dayofmonth dayofweek dayofyear days_in_month decade decode degrees
    dense_rank divide editdist3 element_at encode ends_with entropy epoch epoch_ms epoch_ns epoch_us
    equi_width_bins era even exp factorial favg fdiv fill filter first first_value flatten floor
    fmod format format_bytes formatreadabledecimalsize formatreadablesize from_base64 from_binary
    from_hex from_json from_json_strict fsum gamma gcd gen_random_uuid geomean geometric_mean
    get_bit get_current_time get_current_timestamp grade_up greatest greatest_common_divisor
    group_concat hamming hash hex histogram histogram_exact hour if ilike_escape instr isfinite
    isinf isnan isodow isoyear jaccard jaro_similarity jaro_winkler_similarity json json_array
    json_array_length json_contains json_exists json_extract json_extract_path
    json_extract_path_text json_extract_string json_group_array json_group_object
    json_group_structure json_keys json_merge_patch json_object json_pretty json_quote
    json_structure json_transform json_transform_strict json_type json_valid json_value julian
    kahan_sum kurtosis kurtosis_pop lag last last_day last_value lcase lcm lead least
    least_common_multiple left left_grapheme len length length_grapheme levenshtein lgamma
    like_escape list list_aggr list_aggregate list_any_value list_append list_apply
    list_approx_count_distinct list_avg list_bit_and list_bit_or list_bit_xor list_bool_and
    list_bool_or list_cat list_concat list_contains list_cosine_distance list_cosine_similarity
    list_count list_distance list_distinct list_dot_product list_element list_entropy list_extract
    list_filter list_first list_grade_up list_has list_has_all list_has_any list_histogram
    list_indexof list_inner_product list_intersect list_kurtosis list_kurtosis_pop list_last
    list_mad list_max list_median list_min list_mode list_negative_dot_product
    list_negative_inner_product list_pack list_position list_prepend list_product list_reduce
    list_reverse list_reverse_sort list_select list_sem list_skewness list_slice list_sort
    list_stddev_pop list_stddev_samp list_string_agg list_sum list_transform list_unique list_value
    list_var_pop list_var_samp list_where list_zip listagg ln log log10 log2 lower lpad ltrim lttb
    mad make_date make_time make_timestamp make_timestamp_ms make_timestamp_ns make_timestamptz map
    map_concat map_contains map_contains_entry map_contains_value map_entries map_extract
    map_extract_value map_from_entries map_keys map_values max max_by md5 md5_number
    md5_number_lower md5_number_upper mean median microsecond millennium millisecond min min_by
    minute mismatches mod mode month monthname multiply nanosecond nextafter nfc_normalize
    normalized_interval not_ilike_escape not_like_escape now nth_value ntile nullif octet_length ord
    overlay parse_dirname parse_dirpath parse_filename parse_formatted_bytes parse_path percent_rank
    pi position pow power prefix printf product quantile quantile_cont quantile_disc quarter radians
    random rank rank_dense reduce regexp_escape regexp_extract regexp_extract_all regexp_full_match
    regexp_matches regexp_replace regexp_split_to_array regr_avgx regr_avgy regr_count
    regr_intercept regr_r2 regr_slope regr_sxx regr_sxy regr_syy repeat replace reservoir_quantile
    reverse right right_grapheme round round_even roundbankers row row_number row_to_json rpad rtrim
    second sem set_bit sha1 sha256 sign signbit sin sinh skewness split split_part sqrt starts_with
    stddev stddev_pop stddev_samp str_split str_split_regex strftime string_agg string_split
    string_split_regex string_to_array strip_accents strlen strpos strptime struct_concat
    struct_contains struct_extract struct_extract_at struct_has struct_indexof struct_insert
    struct_keys struct_pack struct_position struct_update struct_values substr substring
    substring_grapheme subtract suffix sum sum_no_overflow sumkahan tan tanh time_bucket timezone
    timezone_hour timezone_minute to_base to_base64 to_binary to_centuries to_days to_decades to_hex
    to_hours to_json to_microseconds to_millennia to_milliseconds to_minutes to_months to_quarters
    to_seconds to_timestamp to_weeks to_years today transaction_timestamp translate trim trunc
    try_strptime typeof ucase unbin unhex unicode union_extract union_tag union_value unnest upper
    url_decode url_encode uuid uuid_extract_timestamp uuid_extract_version var_pop var_samp variance
    wavg week weekday weekofyear weighted_avg xor year yearweek
"""
FUNCTIONS = frozenset(_WORDS.split())

# What a parse tree may consist of. Whatever else a newer parser makes is refused.
_QUERIES = frozenset({"SELECT_NODE", "SET_OPERATION_NODE", "RECURSIVE_CTE_NODE"})
_RELATIONS = frozenset(
    {
        "BASE_TABLE", "SUBQUERY", "JOIN", "TABLE_FUNCTION", "EXPRESSION_LIST", "EMPTY", "PIVOT",
        "SHOW_REF",
    }
)  # fmt: skip
_EXPRESSIONS = frozenset(
    {
        "BETWEEN", "CASE", "CAST", "COLLATE", "COLUMN_REF", "COMPARISON", "CONJUNCTION", "CONSTANT",
        "FUNCTION", "LAMBDA", "LAMBDA_REF", "OPERATOR", "POSITIONAL_REFERENCE", "STAR", "SUBQUERY",
        "TYPE", "WINDOW",
    }
)  # fmt: skip
_ABOUT_SQL = frozenset(
    {
        "BinderException", "CatalogException", "NotImplementedException", "ParserException",
        "SyntaxException",
    }
)  # fmt: skip
_SYSTEM = ("duckdb_", "information_schema", "pg_", "pragma_", "sqlite_")


def check(connection: duckdb.DuckDBPyConnection, sql: str, views: Iterable[str]) -> frozenset[str]:
    """Return which of ``views`` a statement reads, once it may run; nothing is run here.

    Raises UsageError where it is no SQL, Refused where it is more than one reading statement may
    do; both say what and what to do instead.
    """
    if len(sql) > MAX_CHARS:
        raise UsageError(f"the SQL has {len(sql)} characters; {MAX_CHARS} is the most")
    if "\0" in sql or sql != sql.encode("utf-8", "replace").decode():
        raise UsageError("the SQL holds a character that no text has", hint="Look for NUL in it.")
    _one_select(connection, sql)
    try:
        found = connection.execute("SELECT json_serialize_sql(?::VARCHAR)", [sql]).fetchone()
        tree = json.loads(found[0]) if found else {}
    except RecursionError:
        raise UsageError(
            "the SQL is nested too deeply", hint="Name parts of it in a WITH."
        ) from None
    if tree.get("error", True) or len(tree["statements"]) != 1:
        raise Refused("this statement is not a plain SELECT", hint=_READS)
    return _Walk(views).over(tree["statements"][0])


def understood(error: duckdb.Error) -> HypatiaError | None:
    """Return the sentence for an error about the SQL itself; None for one met while it ran.

    Only the former quotes nothing but the SQL: while rows are read, the engine may look at one that
    the view leaves out before it leaves it out, and quote it.
    """
    if type(error).__name__ not in _ABOUT_SQL:
        return None
    kind, _, text = str(error).strip().partition(": ")
    if not kind.endswith("Error"):
        text = str(error).strip()
    return UsageError(f"the SQL is not understood: {text}", hint=_SCHEMA)


def _one_select(connection: duckdb.DuckDBPyConnection, sql: str) -> None:
    import duckdb

    try:
        statements = connection.extract_statements(sql)
    except duckdb.Error as error:
        raise understood(error) or UsageError("the SQL is not understood", hint=_SCHEMA) from None
    kinds = [statement.type.name for statement in statements]
    if not kinds:
        raise UsageError("there is no SQL in this", hint='Example: hypatia-mem sql "FROM sessions"')
    if len(kinds) > 1 or kinds == ["MULTI"]:
        raise Refused(
            f"one SELECT at a time: this is {', '.join(kinds[:4])}",
            hint="Give them one after the other. A PIVOT is more than one unless its values are"
            " named: PIVOT ... ON kind IN ('rule', 'taboo').",
        )
    if kinds != ["SELECT"]:
        raise Refused(f"{kinds[0]} is refused: sql only reads", hint=_HINTS.get(kinds[0], _READS))


class _Step(NamedTuple):
    """A place in the tree and the names that WITH has defined for it."""

    node: Any
    names: frozenset[str]


class _Walk:
    """One pass over a parse tree, without recursion: the tree may be deep."""

    def __init__(self, views: Iterable[str]) -> None:
        self._views = frozenset(views)
        self._used: set[str] = set()
        self._todo: list[_Step] = []

    def over(self, statement: Mapping[str, Any]) -> frozenset[str]:
        self._todo = [_Step(statement, frozenset())]
        while self._todo:
            node, names = self._todo.pop()
            if isinstance(node, dict):
                self._object(node, names)
            elif isinstance(node, list):
                self._todo += (_Step(item, names) for item in node)
        return frozenset(self._used)

    def _object(self, node: dict[str, Any], names: frozenset[str]) -> None:
        kind = node.get("type")
        if "class" in node:
            self._expression(node)
        elif isinstance(kind, str) and kind.endswith("_NODE"):
            if kind not in _QUERIES:
                raise Refused("inside WITH, too, one only reads", hint=_READS)
            self._query(node, names)
            return
        elif "sample" in node and "alias" in node:
            self._relation(node, names)
            if kind == "TABLE_FUNCTION":
                function = node["function"]
                _refuse_table_function(function)
                rest = {key: value for key, value in function.items() if key != "function_name"}
                self._push({**node, "function": list(rest.values())}, names)
                return
        elif "table_name" in node or "function_name" in node:
            raise Refused("this SQL has a form that is not known here", hint=_SCHEMA)
        self._push(node, names)

    def _push(self, node: dict[str, Any], names: frozenset[str]) -> None:
        self._todo += (_Step(value, names) for value in node.values())

    def _query(self, node: dict[str, Any], names: frozenset[str]) -> None:
        """Take a query's WITH first: each name holds for what comes after it, and in the query."""
        own = str(node.get("cte_name") or "").lower()
        for entry in (node.get("cte_map") or {}).get("map", ()):
            name = str(entry["key"]).lower()
            if name.startswith(_SYSTEM):
                raise Refused(
                    f"WITH cannot define {name[:60]!a}: the engine has tables of that name"
                )
            self._todo.append(_Step(entry["value"], names))
            names |= {name}
        for key, value in node.items():
            if key == "cte_map":
                continue
            # A recursive part reads its own name, but the part it begins with does not.
            seen = names | {own} if own and key != "left" else names
            self._todo.append(_Step(value, seen))

    def _relation(self, node: dict[str, Any], names: frozenset[str]) -> None:
        kind = node.get("type")
        if kind not in _RELATIONS:
            raise Refused(f"{str(kind)[:40]} is not something to read from here", hint=_SCHEMA)
        if kind == "SHOW_REF" and node.get("query") is None:
            raise Refused("SHOW is refused", hint=_SCHEMA)
        if kind != "BASE_TABLE":
            return
        name = str(node.get("table_name"))
        folded = name.lower()
        schema = str(node.get("schema_name") or "").lower()
        if node.get("catalog_name") or (schema and schema != "recurring"):
            raise Refused(
                f"only the views can be read, and they have no schema: {name[:60]!a}", hint=_SCHEMA
            )
        if node.get("at_clause") is not None:
            raise Refused("AT is refused: a view has one state", hint="Earlier ones: FROM versions")
        if folded in names:
            return
        if folded not in self._views or schema:
            a_file = any(mark in name for mark in "./\\:*")
            hint = "Files are not read here. " + _SCHEMA if a_file else _near(folded, self._views)
            raise Refused(f"there is no view {name[:60]!a}", hint=hint)
        self._used.add(folded)

    def _expression(self, node: dict[str, Any]) -> None:
        kind = node["class"]
        if kind == "PARAMETER":
            raise Refused(
                "there is no value for a placeholder here", hint="Write the value itself."
            )
        if kind not in _EXPRESSIONS:
            raise Refused(f"{str(kind)[:40]} is not known here", hint=_SCHEMA)
        if "function_name" in node:
            _refuse_function(node)


def _refuse_function(node: Mapping[str, Any]) -> None:
    """Refuse a function that is not on the list; operators are functions without letters."""
    name = str(node["function_name"]).lower()
    operator = not any(char.isalnum() or char == "_" for char in name) or name == "!__postfix"
    if operator or name in FUNCTIONS:
        return
    if name in TABLE_FUNCTIONS:
        raise Refused(f"{name} makes a table here", hint=f"Write it behind FROM: FROM {name}(...)")
    raise Refused(
        f"the function {name[:60]!a} is not allowed here",
        hint=_near(name, FUNCTIONS, "Functions that only compute are."),
    )


def _refuse_table_function(node: Mapping[str, Any]) -> None:
    name = str(node.get("function_name", "")).lower()
    if node.get("schema") or node.get("catalog") or name not in TABLE_FUNCTIONS:
        allowed = ", ".join(sorted(TABLE_FUNCTIONS))
        raise Refused(
            f"the table function {name[:60]!a} is refused: it could read what is not a view",
            hint=f"Allowed behind FROM: {allowed}, and the views: hypatia-mem sql --schema",
        )


def _near(name: str, known: Iterable[str], otherwise: str = _SCHEMA) -> str:
    import difflib

    near = difflib.get_close_matches(name, sorted(known), 3, 0.7)
    return f"Did you mean {' or '.join(near)}?" if near else otherwise
