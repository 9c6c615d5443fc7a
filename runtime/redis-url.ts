export type RedisNode = { host: string; port: number };
type Login = { username?: string; password?: string };

/** A way to reach Redis: one server, the nodes of a cluster, or the sentinels that name the current master. */
export type RedisTarget =
  | (Shared & { kind: "server" | "cluster" })
  | (Shared & { kind: "sentinel"; master: string; sentinelLogin: Login });
type Shared = { nodes: readonly RedisNode[]; login: Login; tls: boolean; db: number };

/** Its message says what is wrong with a URL, and contains nothing of the URL, which may have a password. */
export class RedisUrlError extends Error {
  override readonly name = "RedisUrlError";
}

const form = /^(rediss?)(?:\+(cluster|sentinel))?:\/\/(?:([^@]*)@)?([^/?#@]*)(?:\/([^?#]*))?(?:\?([^#]*))?$/;
const FORMS =
  "expected redis://host, redis+cluster://host,host or redis+sentinel://host,host?master=name (rediss… with TLS), with special characters of passwords percent-encoded";
const defaultPorts = { server: 6_379, cluster: 6_379, sentinel: 26_379 } as const;
const sentinelParameters = ["master", "sentinel_username", "sentinel_password"];

/**
 * Parses `redis://user:password@host:port/0`. With `redis+cluster:` there are one or several hosts separated by commas, from
 * which the other nodes are found. With `redis+sentinel:` the hosts are sentinels, and the parameters `master`,
 * `sentinel_username` and `sentinel_password` belong to them. `rediss` in each of them means TLS. Throws RedisUrlError.
 */
export function parseRedisUrl(url: string): RedisTarget {
  const found = form.exec(url);
  // URL.parse removes some of these characters, so another host would be meant than is written.
  if (!found || /[\s\p{Cc}]/u.test(url)) throw new RedisUrlError(FORMS);
  const [, scheme, suffix, userinfo, hosts = "", path = "", query = ""] = found;
  const kind = suffix === "cluster" || suffix === "sentinel" ? suffix : "server";
  const nodes = hosts.split(",").map((host) => parseNode(host, defaultPorts[kind]));
  if (kind === "server" && nodes.length > 1)
    throw new RedisUrlError("several hosts need redis+cluster: or redis+sentinel: (rediss+… with TLS)");
  const db = parseDatabase(path);
  if (kind === "cluster" && db !== 0) throw new RedisUrlError("a cluster has only the database 0");
  const parameters = parseParameters(query, kind === "sentinel" ? sentinelParameters : []);
  const [name, password] = splitOnce(userinfo ?? "");
  const shared = { nodes, tls: scheme === "rediss", db, login: createLogin(decode(name), decode(password)) };
  if (kind !== "sentinel") return { kind, ...shared };
  const master = parameters.get("master");
  if (!master) throw new RedisUrlError("redis+sentinel: needs the parameter master, the name of the monitored master");
  const [username, own] = [parameters.get("sentinel_username"), parameters.get("sentinel_password")];
  return { kind, ...shared, master, sentinelLogin: createLogin(username ?? "", own ?? "") };
}

function parseNode(text: string, defaultPort: number): RedisNode {
  const parsed = URL.parse(`redis://${text}`);
  if (!parsed?.hostname || parsed.pathname !== "" || parsed.port === "0") throw new RedisUrlError(FORMS);
  const host = parsed.hostname.replace(/^\[(.*)\]$/, "$1");
  return { host, port: parsed.port === "" ? defaultPort : Number(parsed.port) };
}

function parseDatabase(path: string): number {
  if (!/^\d{0,4}$/.test(path)) throw new RedisUrlError("the path is not the number of a database");
  return Number(path);
}

function parseParameters(query: string, known: readonly string[]): URLSearchParams {
  // A plus sign in a password stays one.
  const parameters = new URLSearchParams(query.replaceAll("+", "%2B"));
  const allowed = known.length === 0 ? "none is" : `${known.join(", ")} are`;
  if ([...parameters.keys()].some((name) => !known.includes(name)))
    throw new RedisUrlError(`a parameter is unknown; ${allowed} allowed with this scheme`);
  return parameters;
}

function splitOnce(text: string): [string, string] {
  const at = text.indexOf(":");
  return at === -1 ? [text, ""] : [text.slice(0, at), text.slice(at + 1)];
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw new RedisUrlError(FORMS);
  }
}

const createLogin = (username: string, password: string): Login => ({
  ...(username === "" ? {} : { username }),
  ...(password === "" ? {} : { password }),
});
