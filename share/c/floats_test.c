/* Golden inputs and outputs. Ends with one line, MLO PASS .. or MLO FAIL .. */
#include "profile.h"

#include "model.h"

#include <stdio.h>
#include <string.h>

@PAINTED@
@WHOLE@

int main(void) {
    const int right = whole();
#ifdef MODEL_PROFILE
    print_profile();
#endif
    return !right;
}
