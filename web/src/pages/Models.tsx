// The registry: models with their versions, stages and the runs they came from.
import { Await, Empty } from '../parts/Box';
import { Markdown } from '../parts/Markdown';
import { Time } from '../parts/Time';
import { api } from '../state/api';
import { href } from '../state/router';
import { useTitle } from '../state/title';
import { useLoaded } from '../state/use';

interface Version {
  version: string | number;
  run?: string;
  run_id?: string;
  stage?: string;
  current_stage?: string;
  status?: string;
  created_ms?: number;
  aliases?: string[];
  description?: string;
}

interface Model {
  name: string;
  description?: string;
  versions?: Version[];
  aliases?: Record<string, string | number>;
  tags?: Record<string, string>;
}

function Versions({ model, marked }: { model: Model; marked?: string }) {
  const aliases = Object.entries(model.aliases ?? {});
  return (
    <div class="scroll" tabIndex={0}>
      <table class="plain-table">
        <thead><tr><th>Version</th><th>Aliases</th><th>Stage</th><th>Status</th><th>Run</th><th class="right">Made</th></tr></thead>
        <tbody>
          {(model.versions ?? []).map((one) => {
            const run = one.run ?? one.run_id;
            const stage = one.stage ?? one.current_stage;
            return (
              <tr key={String(one.version)} class={String(one.version) === marked ? 'marked' : undefined}
                aria-current={String(one.version) === marked ? 'true' : undefined}>
                <td>{one.version}</td>
                <td>{[...(one.aliases ?? []), ...aliases.filter(([, v]) => String(v) === String(one.version)).map(([k]) => k)]
                  .map((alias) => <span key={alias} class="tag">@{alias}</span>)}</td>
                <td>{stage && stage !== 'None' ? stage : '–'}</td>
                <td>{one.status ?? '–'}</td>
                <td>{run ? <a class="mono" href={href(['job', run])}>{run.slice(0, 12)}</a> : '–'}</td>
                <td class="right"><Time at={one.created_ms} /></td>
              </tr>
            );
          })}
        </tbody>
      </table>
    </div>
  );
}

// All models, or one of them with a version marked.
export function Models({ name, version }: { name?: string; version?: string }) {
  useTitle(name);
  const models = useLoaded('models', api.models);
  return (
    <div class="page">
      <div class="page-head">
        <h1>{name ?? 'Models'}</h1>
        {name ? <a href={href(['models'])}>all models</a> : null}
      </div>
      <Await of={models}>
        {(reply) => {
          const shown = (reply.models as unknown as Model[]).filter((model) => !name || model.name === name);
          if (shown.length === 0) {
            return (
              <Empty title={name ? `No model ${name}` : 'No model is registered'}>
                <p>Register one from a run: <code>mlflow.register_model("runs:/RUN/model", "NAME")</code></p>
              </Empty>
            );
          }
          return (
            <div class="stack">
              {shown.map((model) => (
                <section key={model.name} class="card flush">
                  <header><h2><a href={href(['models', model.name])}>{model.name}</a></h2><span class="dim">{model.versions?.length ?? 0} versions</span></header>
                  {model.description ? <div style={{ padding: '0 16px 8px' }}><Markdown text={model.description} /></div> : null}
                  <Versions model={model} marked={version} />
                </section>
              ))}
            </div>
          );
        }}
      </Await>
    </div>
  );
}
