import type { ComponentType } from "preact";
import { useEffect, useErrorBoundary, useState } from "preact/hooks";
import { bodyOf, giveToken } from "../api/client";
import type { ErrorBody, RunSummary } from "../api/types";
import { Empty, ErrorNotice, Loading } from "../components/Notice";
import { Words } from "../components/Words";
import { formatBytes } from "../format/units";
import { findPage, type PageInfo } from "../pages/registry";
import { hrefOf, param, route } from "../state/route";
import { detail, detailError, isRefused, run, runs, serverError } from "../state/runs";

/** The page that the address names, or what stands in its way. */
export function PageFrame() {
  const page = findPage(route.value.page);
  const known = detail.value;
  if (isRefused.value && serverError.value) return <AccessKey error={serverError.value} />;
  if (serverError.value) return <ErrorNotice error={serverError.value} onRetry={() => location.reload()} />;
  if (runs.value === null) return <Loading what="Asking the server…" />;
  if (!page) {
    const error = { what: "there is no such page", where: route.value.page, hint: "the pages are listed at the side" };
    return <ErrorNotice error={error} />;
  }
  if (!run.value) return <NoRun />;
  if (run.value.state === "failed") return <ErrorNotice error={failure(run.value)} />;
  if (detailError.value) return <ErrorNotice error={detailError.value} onRetry={() => location.reload()} />;
  if (!known || known.id !== run.value.id) return <Progress run={run.value} />;
  const missing = page.missing(known);
  if (missing) {
    return (
      <>
        <h1>{page.title}</h1>
        <Empty>
          <Words text={missing} />
        </Empty>
      </>
    );
  }
  return <Loaded key={page.id} page={page} />;
}

function NoRun() {
  if (runs.value?.length === 0) return <Empty>Nothing is here yet. Runs appear as they are recorded.</Empty>;
  const first = runs.value?.[0];
  return (
    <Empty>
      There is no run <code>{param("run")}</code>. Open{" "}
      <a href={hrefOf("overview", { run: first?.key, rank: null, step: null, window: null })}>{first?.name}</a>.
    </Empty>
  );
}

/** Asks for the token of the server, which this browser has not seen. The place in the address stays. */
function AccessKey({ error }: { error: ErrorBody }) {
  const [typed, setTyped] = useState("");
  const onSubmit = (event: Event) => {
    event.preventDefault();
    giveToken(typed);
  };
  return (
    <>
      <ErrorNotice error={error} />
      <form class="choices" onSubmit={onSubmit}>
        <label>
          Or paste it here{" "}
          <input
            type="text"
            size={60}
            required
            autocomplete="off"
            spellcheck={false}
            placeholder="http://127.0.0.1:8000/?token=…"
            value={typed}
            onInput={(event) => setTyped(event.currentTarget.value)}
          />
        </label>
        <button type="submit">Open</button>
      </form>
    </>
  );
}

function failure(run: RunSummary): ErrorBody {
  return run.error ?? { what: "the run cannot be read", where: run.path };
}

function Progress({ run }: { run: RunSummary }) {
  const done = run.progress ? Number(run.progress.done_bytes) : 0;
  const total = run.progress?.total_bytes ? Number(run.progress.total_bytes) : 0;
  return (
    <div class="notice loading" role="status">
      <p>
        Reading {run.name}
        {total > 0 && `: ${formatBytes(done)} of ${formatBytes(total)}`}
      </p>
      <progress
        aria-label={`Reading ${run.name}`}
        value={total > 0 ? done : undefined}
        max={total > 0 ? total : undefined}
      />
    </div>
  );
}

/** A page whose code is loaded when it is first shown. */
function Loaded({ page }: { page: PageInfo }) {
  const [Page, setPage] = useState<ComponentType | null>(null);
  const [loadError, setLoadError] = useState<ErrorBody | null>(null);
  const [error, reset] = useErrorBoundary();
  useEffect(() => {
    page.load().then(
      (loaded) => setPage(() => loaded.default),
      (error: unknown) => setLoadError(bodyOf(error)),
    );
  }, [page]);
  if (error) {
    const where = error instanceof Error ? error.message : String(error);
    return <ErrorNotice error={{ what: "this page has a fault", where, hint: "please report it" }} onRetry={reset} />;
  }
  if (loadError) return <ErrorNotice error={loadError} onRetry={() => location.reload()} />;
  return Page ? <Page /> : <Loading />;
}
