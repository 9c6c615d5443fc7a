import { isApiKey, isMerchantId, isTestKey } from "./account-ids.ts";
import { usageError } from "./cli-error.ts";
import { findLocalStack, type LocalStack } from "./find-stack.ts";
import { readProfile } from "./stored-profile.ts";
import type { Terminal } from "./terminal.ts";

/** The options that name the service and the account, in the order of the help. */
export type CredentialOptions = { url?: string; apiKey?: string; merchant?: string; live?: boolean };

/** Where credentials are searched. */
type Place = Pick<Terminal, "env" | "cwd">;

/** How a command reaches the service, and where that was found. */
export type Credentials = {
  url: string;
  apiKey: string;
  /** Undefined: the only merchant of the key. */
  merchantId: string | undefined;
  /** Where the key was found, for people. */
  source: string;
  /** The stack that `npm start` runs, when the key is its own. */
  stack?: LocalStack;
};

/** Returns a base URL in its normal form, without slashes at its end. Throws CliError for anything else. */
export function readBaseUrl(text: string): string {
  if (!URL.canParse(text) || !/^https?:$/.test(new URL(text).protocol))
    throw usageError(`expected the URL of the service, such as https://pay.example.com, and got ${text}`);
  return new URL(text).href.replace(/\/+$/, "");
}

/**
 * Finds the key and the URL that belong to it, in this order: options, the environment, the stored profile, the local stack.
 * The URL always comes from where the key comes from, so that a key is never sent to another service. Throws CliError when
 * there is none, for a live key without `--live`, and for a key or a merchant's id that cannot be one.
 */
export async function findCredentials(terminal: Place, options: CredentialOptions): Promise<Credentials> {
  const found = await findAny(terminal, options);
  const merchantId = options.merchant ?? found.merchantId;
  if (!isApiKey(found.apiKey)) throw usageError(`the key of ${found.source} is not an API key, which begins with svc_`);
  if (merchantId !== undefined && !isMerchantId(merchantId))
    throw usageError(`expected a merchant's id, mrch_ and 32 hexadecimal digits, and got ${merchantId}`);
  if (!isTestKey(found.apiKey) && !options.live)
    throw usageError(`the key of ${found.source} is a live key: pay uses test keys, unless you add --live`);
  if (isTestKey(found.apiKey) && options.live)
    throw usageError(`the key of ${found.source} is a test key, and --live needs a live key`);
  return { ...found, url: readBaseUrl(found.url), merchantId };
}

async function findAny(terminal: Place, options: CredentialOptions): Promise<Credentials> {
  const { url, apiKey, live } = options;
  const { PAY_URL, PAY_API_KEY, PAY_MERCHANT_ID } = terminal.env;
  if (url !== undefined || apiKey !== undefined)
    return pair({ url, apiKey, merchantId: undefined, source: "the options" }, ["--url", "--api-key"]);
  if (PAY_URL || PAY_API_KEY)
    return pair(
      { url: PAY_URL, apiKey: PAY_API_KEY, merchantId: PAY_MERCHANT_ID || undefined, source: "the environment" },
      ["PAY_URL", "PAY_API_KEY"],
    );
  const profile = await readProfile(terminal.env);
  if (profile && !live) return { ...profile, source: "pay login" };
  const stack = await findLocalStack(terminal);
  if (stack) return { url: stack.baseUrl, ...toCaller(stack, live), source: `the local stack of ${stack.file}`, stack };
  throw usageError(
    "no API key was found: run `pay login`, set PAY_URL and PAY_API_KEY, or run `npm start` in the folder of the service",
  );
}

function toCaller(stack: LocalStack, live = false): { apiKey: string; merchantId: string } {
  const { apiKey, merchantId } = live ? stack.live : stack.test;
  return { apiKey, merchantId };
}

type Pair = { url: string | undefined; apiKey: string | undefined; merchantId: string | undefined; source: string };

function pair({ url, apiKey, ...rest }: Pair, [urlName, keyName]: readonly [string, string]): Credentials {
  if (!url) throw usageError(`${keyName} is set without ${urlName}: a key belongs to the service that issued it`);
  if (!apiKey) throw usageError(`${urlName} is set without ${keyName}`);
  return { url, apiKey, ...rest };
}
