import type { Metrics } from "../../runtime/metrics.ts";
import type { EvmNetwork } from "../../runtime/networks/read-networks.ts";
import { openHeadSocket } from "./head-socket.ts";

/**
 * Ends the watcher's waits when endpoints announce blocks. An announcement is not evidence of a block: the watcher asks an
 * endpoint, as after every wait.
 */
export type HeadWakes = {
  /**
   * Waits for `ms`, or until an endpoint announces a block of this height or above. An announcement that came since the last
   * wait ends it at once. Returns true for an announcement. Subscribes where the networks file names a WebSocket.
   */
  wait(args: { height: number; ms: number; signal: AbortSignal }): Promise<boolean>;
  /** Says that the last announcement was true. False ones end `MAX_FALSE` waits, and later ones as often as polls do. */
  confirm(): void;
  /** Closes the sockets. Later waits open them again. */
  close(): void;
};

/** False announcements of an endpoint that end waits. One more is allowed after each `pollMs`. */
const MAX_FALSE = 4;
/** Sockets are closed when nothing has waited for this long, milliseconds: another process watches the chain by now. */
const UNUSED_MS = 60_000;

/** One endpoint's announcements: the highest that no wait has used, and how many false ones may still end a wait. */
type Source = { height: number | undefined; allowed: number; countedAt: number };

/** Creates the wakes of a network without opening a socket. */
export function createHeadWakes(network: EvmNetwork, metrics: Metrics): HeadWakes {
  const sources = new Map<string, Source>();
  let sockets: (() => void)[] = [];
  let unused: NodeJS.Timeout | undefined;
  let notify: () => void = () => undefined;
  let last: Source | undefined;

  const open = (): void => {
    unused ??= setTimeout(close, UNUSED_MS).unref();
    unused.refresh();
    if (sockets.length > 0) return;
    sockets = network.rpc.flatMap(({ name, wsUrl }) => {
      if (wsUrl === undefined) return [];
      const source: Source = { height: undefined, allowed: MAX_FALSE, countedAt: performance.now() };
      sources.set(name, source);
      const onHeight = (height: number) => {
        source.height = height;
        notify();
      };
      const onState = (announces: boolean) =>
        metrics.headSubscriptions.set({ chain: network.chain, endpoint: name }, Number(announces));
      return [openHeadSocket({ url: wsUrl, blockMs: network.blockMs, onHeight, onState })];
    });
  };
  const close = (): void => {
    clearTimeout(unused);
    unused = undefined;
    for (const end of sockets) end();
    sockets = [];
    sources.clear();
  };
  /** Uses an announcement of this height or above. Returns false when there is none that may end a wait. */
  const take = (height: number): boolean => {
    for (const source of sources.values()) {
      if (source.height === undefined || source.height < height) continue;
      source.height = undefined;
      const now = performance.now();
      source.allowed = Math.min(MAX_FALSE, source.allowed + (now - source.countedAt) / network.pollMs);
      source.countedAt = now;
      if (source.allowed < 1) continue;
      source.allowed -= 1;
      last = source;
      return true;
    }
    return false;
  };

  return {
    async wait({ height, ms, signal }) {
      open();
      last = undefined;
      if (take(height)) return true;
      return new Promise((resolve) => {
        const giveUp = () => end(false);
        const timer = setTimeout(giveUp, ms);
        signal.addEventListener("abort", giveUp);
        notify = () => {
          if (take(height)) end(true);
        };
        function end(isAnnounced: boolean) {
          clearTimeout(timer);
          signal.removeEventListener("abort", giveUp);
          notify = () => undefined;
          resolve(isAnnounced);
        }
      });
    },
    confirm() {
      if (last) last.allowed += 1;
      last = undefined;
    },
    close,
  };
}
