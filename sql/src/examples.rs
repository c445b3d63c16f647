//! Questions that people ask first.

/// A question and its SQL.
pub(crate) struct Example {
    pub(crate) title: &'static str,
    pub(crate) sql: &'static str,
}

/// In the order in which they are shown.
pub(crate) const EXAMPLES: &[Example] = &[
    Example {
        title: "Operators by their own time",
        sql: "select name, count(*) as calls, sum(self_ns) as self_ns, sum(dur_ns) as total_ns\nfrom op\nwhere kind = 'op'\n\
              group by name\norder by self_ns desc\nlimit 20",
    },
    Example {
        title: "Kernels by time, with the operator that launched them",
        sql: "select name, op_name, count(*) as calls, sum(dur_ns) as total_ns, avg(dur_ns) as mean_ns\nfrom kernel\n\
              group by name, op_name\norder by total_ns desc\nlimit 20",
    },
    Example {
        title: "How long each device was busy",
        sql: "with work as (\n  select rank, device, start_ns, dur_ns from kernel\n  union all\n  select rank, device, start_ns, dur_ns from copy)\n\
              select rank, device, busy_ns(start_ns, dur_ns) as busy_ns,\n  max(start_ns + dur_ns) - min(start_ns) as total_ns\n\
              from work\ngroup by rank, device\norder by rank, device",
    },
    Example {
        title: "Steps that took longest",
        sql: "select rank, step, dur_ns\nfrom step\nwhere is_step\norder by dur_ns desc\nlimit 20",
    },
    Example {
        title: "Where the time of the slowest step goes",
        sql: "with slowest as (select rank, step from step where is_step order by dur_ns desc limit 1)\n\
              select op.name, count(*) as calls, sum(op.self_ns) as self_ns\nfrom op join slowest using (rank, step)\n\
              group by op.name\norder by self_ns desc\nlimit 20",
    },
    Example {
        title: "Longest waits from launch to kernel",
        sql: "select launched_name, op_name, delay_ns, step\nfrom launch\norder by delay_ns desc\nlimit 20",
    },
    Example {
        title: "Communication that no computation hides, by device",
        sql: "with spans as (\n  select rank, device,\n    span_union(start_ns, dur_ns) filter (where class = 'communication') as comm,\n    \
              span_union(start_ns, dur_ns) filter (where class = 'compute') as compute\n  from kernel group by rank, device)\n\
              select rank, device, coalesce(span_ns(comm), 0) as comm_ns,\n  coalesce(span_ns(comm) - coalesce(span_ns(span_intersect(comm, compute)), 0), 0) as exposed_ns\n\
              from spans\norder by rank, device",
    },
    Example {
        title: "Memory in use over time",
        sql: "select time_ns, device, allocated_bytes\nfrom memory\nwhere allocated_bytes is not null\norder by time_ns",
    },
    Example {
        title: "Files by bytes read",
        sql: "select file, count(*) as calls, sum(bytes) as bytes, sum(dur_ns) as total_ns\nfrom io_call\nwhere action = 'read'\n\
              group by file\norder by bytes desc\nlimit 20",
    },
    Example {
        title: "Lines of Python by samples",
        sql: "select line, doing, count(*) as samples\nfrom sample\ngroup by line, doing\norder by samples desc\nlimit 20",
    },
    Example { title: "An analysis, by module", sql: "select *\nfrom operators(group_by => 'module')\nlimit 20" },
    Example { title: "What is doubtful in this run", sql: "select severity, code, count, says\nfrom finding" },
];
