import { enableCopyButton } from "./copy-link.ts";
import { apply, begin, version } from "./page-state.ts";
import { startPaying } from "./pay-in-page.ts";
import { followStatus } from "./poll-status.ts";
import { startTestConsole } from "./test-payment-buttons.ts";

// The order matters: listeners are registered before the first status is applied.
enableCopyButton();
startTestConsole();
const { pollNow } = followStatus(version, apply);
begin(pollNow);
startPaying();
