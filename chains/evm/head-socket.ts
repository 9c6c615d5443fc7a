import { Agent, type MessageEvent, WebSocket } from "undici";
import { z } from "zod";

/** The first delay before a closed socket is opened again, milliseconds; it doubles with each failure. */
const FIRST_RETRY_MS = 1_000;
const MAX_RETRY_MS = 60_000;
/**
 * A socket that brings more messages in one second is closed for `MAX_RETRY_MS`. A local chain that mines per transaction announces
 * several hundred blocks a second; reading so many messages takes a few percent of a core.
 */
const MAX_MESSAGES_PER_S = 2_000;
/** Largest message, bytes. A block's header has about two thousand. */
const MAX_MESSAGE_BYTES = 65_536;
/** A socket that brings more characters in one second is closed too: to read large messages takes longer. */
const MAX_LENGTH_PER_S = 8_000_000;
/** A socket without a block for this long, and for this many block times, is opened again: its connection may be lost. */
const SILENT_MS = 60_000;
const SILENT_BLOCKS = 10;

const SUBSCRIBE = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "eth_subscribe", params: ["newHeads"] });

const Announcement = z.object({
  params: z.object({ result: z.object({ number: z.string().regex(/^0x[0-9a-f]{1,13}$/i) }) }),
});

/** The height that a message of a `newHeads` subscription announces; undefined for any other message. Pure. */
function readAnnouncement(message: unknown): number | undefined {
  if (typeof message !== "string") return undefined;
  try {
    return Number(Announcement.parse(JSON.parse(message)).params.result.number);
  } catch {
    return undefined;
  }
}

type HeadSocketOptions = {
  url: string;
  /** Usual time between blocks, milliseconds. */
  blockMs: number;
  onHeight: (height: number) => void;
  /** Called with true when the endpoint has announced its first block, and with false when the socket closes. */
  onState: (announces: boolean) => void;
};

/**
 * Subscribes to the new blocks of one endpoint, and again whenever the socket closes, until the returned function is called.
 * Never throws. What the socket brings only ends waits, so a socket that lies or floods can do no more than that.
 */
export function openHeadSocket({ url, blockMs, onHeight, onState }: HeadSocketOptions): () => void {
  const dispatcher = new Agent({ webSocket: { maxPayloadSize: MAX_MESSAGE_BYTES } });
  let socket: WebSocket | undefined;
  let timer: NodeJS.Timeout | undefined;
  let retryMs = FIRST_RETRY_MS;
  let isClosed = false;

  const connect = (): void => {
    const opened = new WebSocket(url, { dispatcher });
    socket = opened;
    let [second, messages, length] = [0, 0, 0];
    const end = (): void => {
      if (socket !== opened) return;
      socket = undefined;
      onState(false);
      opened.close();
      retryLater();
    };
    const restartSilence = (): void => {
      clearTimeout(timer);
      timer = setTimeout(end, Math.max(SILENT_MS, SILENT_BLOCKS * blockMs)).unref();
    };
    opened.addEventListener("open", () => opened.send(SUBSCRIBE));
    opened.addEventListener("error", end);
    opened.addEventListener("close", end);
    opened.addEventListener("message", ({ data }: MessageEvent) => {
      if (socket !== opened) return;
      const now = Math.floor(performance.now() / 1_000);
      if (now !== second) [second, messages, length] = [now, 0, 0];
      messages += 1;
      length += typeof data === "string" ? data.length : MAX_MESSAGE_BYTES;
      if (messages > MAX_MESSAGES_PER_S || length > MAX_LENGTH_PER_S) {
        retryMs = MAX_RETRY_MS;
        return end();
      }
      const height = readAnnouncement(data);
      if (height === undefined) return;
      retryMs = FIRST_RETRY_MS;
      restartSilence();
      onState(true);
      onHeight(height);
    });
    restartSilence();
  };
  const retryLater = (): void => {
    clearTimeout(timer);
    if (isClosed) return;
    timer = setTimeout(connect, retryMs).unref();
    retryMs = Math.min(2 * retryMs, MAX_RETRY_MS);
  };
  connect();
  return () => {
    isClosed = true;
    clearTimeout(timer);
    const opened = socket;
    socket = undefined;
    opened?.close();
    onState(false);
    void dispatcher.destroy();
  };
}
