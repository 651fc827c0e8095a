/*
 * protocol.c: decoding of requests and replies, and their texts.
 *
 * The decoder looks at length and version only.  What a field means is checked
 * by the operation that uses it, on the privileged side, with its table.
 */
#include <string.h>

#include "protocol.h"

_Static_assert(sizeof(KaRequest) == 32, "the layout of a request is the protocol");
_Static_assert(sizeof(KaReply) == 8 * 4 + 15 * 8 + 4 * 4 + KA_BOOT_FILE_LENGTH, "no padding in a reply");
_Static_assert(offsetof(KaReply, boot_file) % 8 == 0, "a reply is a multiple of eight bytes");

typedef struct Text
{
	uint32_t	number;
	const char *text;
} Text;

static const Text status_texts[] = {
#define STATUS(number, symbol, text) {number, text},
	KA_STATUSES(STATUS)
#undef STATUS
};

static const Text operation_names[] = {
#define OPERATION(number, symbol, name) {number, name},
	KA_OPERATIONS(OPERATION)
#undef OPERATION
};

static const char *
find_text(const Text *texts, size_t n, uint32_t number)
{
	for (size_t i = 0; i < n; i++)
	{
		if (texts[i].number == number)
			return texts[i].text;
	}
	return NULL;
}

bool
ka_request_decode(const void *message, size_t length, KaRequest *request)
{
	if (length != sizeof(*request))
		return false;
	memcpy(request, message, sizeof(*request));
	return request->version == KA_PROTOCOL_VERSION;
}

bool
ka_reply_decode(const void *message, size_t length, KaReply *reply)
{
	if (length != sizeof(*reply))
		return false;
	memcpy(reply, message, sizeof(*reply));
	return reply->version == KA_PROTOCOL_VERSION &&
		find_text(status_texts, sizeof(status_texts) / sizeof(status_texts[0]), reply->status) != NULL &&
		memchr(reply->boot_file, '\0', sizeof(reply->boot_file)) != NULL;
}

const char *
ka_status_text(uint32_t status)
{
	const char *text = find_text(status_texts, sizeof(status_texts) / sizeof(status_texts[0]), status);

	return text ? text : "unknown status";
}

const char *
ka_operation_name(uint32_t operation)
{
	return find_text(operation_names, sizeof(operation_names) / sizeof(operation_names[0]), operation);
}
